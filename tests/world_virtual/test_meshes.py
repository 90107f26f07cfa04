"""Device meshes, whose dimensions are groups."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from ringlab.world import World


def mesh_of(shape, names):
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    sums = []
    for name in names:
        x = torch.tensor([float(dist.get_rank())])
        dist.all_reduce(x, group=mesh[name].get_group())
        sums.append(x.item())
    return sums, list(mesh.get_coordinate()), mesh.get_local_rank(names[0])


def test_a_mesh_of_one_dimension():
    assert World(4).run(mesh_of, (4,), ("x",)) == [([6.0], [r], r) for r in range(4)]


def test_a_mesh_of_two_dimensions():
    results = World(6).run(mesh_of, (2, 3), ("dp", "cp"))
    for rank, (sums, coordinate, local) in enumerate(results):
        row, column = divmod(rank, 3)
        assert sums == [float(column + column + 3), float(3 * (3 * row + 1))]
        assert coordinate == [row, column]
        assert local == row


def flattened():
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("a", "b", "c"))
    flat = mesh["a", "b"]._flatten("ab")
    x = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(x, group=flat.get_group())
    return x.item()


def test_dimensions_of_a_mesh_can_be_flattened_into_one():
    results = World(8).run(flattened)
    assert results == [float(sum(r for r in range(8) if r % 2 == k % 2)) for k in range(8)]


def permuted_mesh():
    mesh = DeviceMesh("cpu", [[3, 1], [2, 0]])
    out = []
    for dim in range(2):
        ranks = dist.get_process_group_ranks(mesh.get_group(dim))
        x = torch.tensor([float(dist.get_rank())])
        dist.all_reduce(x, group=mesh.get_group(dim))
        out.append((sorted(ranks), x.item()))
    return out


def test_a_mesh_with_permuted_ranks():
    results = World(4).run(permuted_mesh)
    assert results[0] == [([0, 1], 1.0), ([0, 2], 2.0)]
    assert results[3] == [([2, 3], 5.0), ([1, 3], 4.0)]
