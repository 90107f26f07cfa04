"""The table of what is supported: each promise has a test that exercises it by name."""

from __future__ import annotations

from collections.abc import Callable

from ringlab.prefill import SUPPORT
from tests.prefill import (
    test_cuda,
    test_exact,
    test_groups,
    test_inputs,
    test_meta,
    test_modes,
    test_precision,
    test_processes,
)

SUPPORTED = [row.name for row in SUPPORT if row.status == "supported"]

EXERCISED_BY: dict[str, list[Callable[..., None]]] = {
    "forward and backward": [
        test_exact.test_report_b1_results_and_gradients_are_those_of_one_device,
        test_inputs.test_report_b4_each_of_q_k_and_v_may_need_a_gradient_or_not,
    ],
    "causal and bidirectional": [
        test_exact.test_report_b1_results_and_gradients_are_those_of_one_device,
        test_exact.test_outputs_before_a_token_do_not_depend_on_it,
    ],
    "every layout": [test_exact.test_any_shape_in_any_layout_is_exact],
    "any length": [
        test_exact.test_report_c2_c10_prime_lengths_on_seven_ranks,
        test_exact.test_report_c4_c6_sequences_shorter_than_twice_the_ranks,
    ],
    "GQA and MQA": [test_exact.test_report_b8_query_heads_share_kv_heads],
    "float32, float64, bfloat16, float16": [
        test_precision.test_report_a3_a18_errors_are_near_those_of_one_device,
        test_inputs.test_report_b12_outputs_and_gradients_have_the_dtype_of_the_inputs,
    ],
    "CPU, CUDA and meta tensors": [
        test_cuda.test_ranks_are_as_exact_as_one_device,
        test_meta.test_the_same_messages_are_sent_with_data_and_without,
    ],
    "sub-groups": [test_groups.test_report_g1_g4_each_ring_computes_its_own_sequence],
    "batches and strided inputs": [test_inputs.test_report_h1_tensors_may_have_any_strides],
    "a kernel of choice": [test_inputs.test_report_b7_the_kernel_of_choice_computes_every_block],
    "activation checkpointing": [
        test_modes.test_report_i1_f11_checkpointed_layers_with_uneven_work_give_the_same_bits
    ],
    "autocast": [
        test_modes.test_autocast_computes_as_on_inputs_of_its_dtype,
        test_modes.test_autocast_gives_the_dtype_that_sdpa_gives,
    ],
    "inference_mode, no_grad": [test_modes.test_without_gradients_nothing_is_saved],
    "torch.compile": [test_modes.test_report_i6_compiled_code_breaks_once_around_the_call],
    "DDP and FSDP2": [
        test_processes.test_report_e8_gradients_of_parameters_are_those_of_one_device
    ],
}


def test_every_supported_row_names_its_tests() -> None:
    assert set(EXERCISED_BY) == set(SUPPORTED)
    assert all(EXERCISED_BY.values())
