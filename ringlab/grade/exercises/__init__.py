"""The exercises: a package for each lesson, and in it a module for each exercise."""
