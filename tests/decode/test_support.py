"""The table of what is supported: each promise has a test that exercises it by name."""

from __future__ import annotations

from collections.abc import Callable

from ringlab.decode import SUPPORT
from tests.decode import (
    test_cache,
    test_cuda,
    test_exact,
    test_groups,
    test_load,
    test_modes,
    test_precision,
    test_processes,
)

SUPPORTED = {row.name for row in SUPPORT if row.status == "supported"}

EXERCISED_BY: dict[str, list[Callable[..., None]]] = {
    "any length": [
        test_exact.test_a_new_token_sees_all_that_the_ranks_hold,
        test_exact.test_report_c7_ranks_that_hold_nothing_take_part,
    ],
    "several new tokens at once": [
        test_exact.test_report_d16_each_of_several_new_tokens_sees_exactly_its_own_past
    ],
    "prompts prefilled in any layout": [
        test_load.test_a_prompt_of_any_layout_becomes_interleaved,
        test_load.test_any_prompt_is_loaded_exactly,
    ],
    "rejected drafts and a second turn": [
        test_cache.test_report_d16_rejected_tokens_are_forgotten_and_others_take_their_place,
        test_load.test_prompts_follow_one_another_as_turns_and_chunks_do,
    ],
    "GQA and MQA": [test_exact.test_report_b8_query_heads_share_kv_heads],
    "float32, float64, bfloat16, float16": [
        test_precision.test_report_a3_a18_errors_are_near_those_of_one_device,
        test_exact.test_all_ranks_come_to_the_same_bits_in_every_dtype,
    ],
    "CPU, CUDA and meta tensors": [
        test_cuda.test_ranks_decode_as_exactly_as_one_device,
        test_modes.test_the_same_happens_with_data_and_without,
        test_processes.test_real_ranks_compute_the_bits_of_virtual_ones,
    ],
    "sub-groups": [test_groups.test_report_g1_g4_each_group_decodes_its_own_sequence],
    "batches and strided inputs": [test_exact.test_report_h1_tensors_may_have_any_strides],
    "a kernel of choice": [test_precision.test_report_a3_a18_errors_are_near_those_of_one_device],
    "autocast": [test_modes.test_autocast_computes_as_on_inputs_of_its_dtype],
    "inference_mode, no_grad": [
        test_modes.test_a_cache_is_used_in_inference_mode_and_outside_by_turns
    ],
    "torch.compile": [
        test_modes.test_report_i6_compiled_code_breaks_around_the_calls_and_is_not_compiled_again
    ],
}


def test_every_supported_row_names_its_tests() -> None:
    assert set(EXERCISED_BY) == SUPPORTED
    assert all(EXERCISED_BY.values())
