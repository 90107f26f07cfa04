"""Gradients are averaged while the backward still runs, one all-reduce a parameter.

With --wrong rank 0 begins with the parameters in another order.
"""

import argparse

import torch
import torch.distributed as dist


def train(model, wrong):
    works = []

    def average(parameter):
        parameter.grad /= dist.get_world_size()
        works.append(dist.all_reduce(parameter.grad, async_op=True))

    parameters = list(model.parameters())
    late = []
    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(late.append if wrong else average)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        loss = model(torch.randn(6, 4)).square().mean()
        loss.backward()
        while late:
            average(late.pop())
        while works:
            works.pop().wait()
        optimizer.step()
        optimizer.zero_grad()
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wrong", action="store_true")
    given = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    torch.manual_seed(rank)
    train(model, given.wrong and rank == 0)
    mine = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    theirs = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(theirs, mine)
    assert all(torch.equal(each, mine) for each in theirs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
