"""Published results of ring attention beside what recordings of the same programs are priced at.

``rows.toml`` holds the results with their sources, ``variants`` the programs that they were
measured with, written anew as far as they matter to a price.
"""
