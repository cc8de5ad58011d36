"""The 21 security tests of the viewer: what each one checks, and where.

| | What must hold | Tests |
| --- | --- | --- |
| 1 | no route and no stream answers without the cookie | `test_guard` |
| 2 | a wrong, used or old ticket is refused | `test_guard`, `test_tickets` |
| 3 | a ticket works once, also under two threads | `test_guard`, `test_tickets` |
| 4 | a ticket works from a redirect file and from a typed address | `browser/test_sign_in` |
| 5 | only this computer is a valid host: foreign, none, two, absolute targets | `test_guard`, `test_server` |
| 6 | foreign origins and fetches of other sites are refused | `test_guard`, `browser/test_sign_in` |
| 7 | the cookie is not sent to another port | `browser/test_sign_in` |
| 8 | only GET and HEAD | `test_guard`, `test_schemathesis` |
| 9 | no traversal in static files, attachments and IDs, encoded twice either | `test_pages_security` |
| 10 | long addresses and headers, many parameters, deep cursors | `test_guard`, `test_server`, and others |
| 11 | hostile text in every field of every page does nothing | `test_hostile_sessions`, `browser/test_hostile` |
| 12 | a hostile title stays in its place: page, file name, event | `test_pages_security`, `test_hostile_events` |
| 13 | every answer has the policy; no page has a style, a handler or a script of its own | `test_pages_security` |
| 14 | no page can be framed | `test_guard`, `browser/test_sign_in` |
| 15 | attachments are downloads | `test_pages_security`, `browser/test_hostile` |
| 16 | a second start, a stale runtime file, a stranger on the port | `test_server` |
| 17 | private files; another user of the computer gets 401 | `test_server` |
| 18 | Ctrl-C with open streams, once and twice | `test_server` |
| 19 | an archive that is locked, gone, replaced or newer is a page that says so | `test_archive_trouble` |
| 20 | a fault shows neither path nor traceback | `test_guard` |
| 21 | schemathesis finds no server error | `test_schemathesis` |
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
TESTS: dict[int, tuple[str, ...]] = {
    1: ("test_guard::test_without_the_cookie_no_route_answers",),
    2: ("test_guard::test_a_wrong_used_or_old_ticket_is_refused", "test_tickets::test_a_ticket_works_for_five_minutes"),
    3: ("test_guard::test_a_ticket_lets_one_of_two_threads_in", "test_tickets::test_of_many_threads_one_gets_in"),
    4: (
        "browser/test_sign_in::test_a_typed_address_signs_in_once",
        "browser/test_sign_in::test_the_file_that_pollux_opens_signs_in",
    ),
    5: (
        "test_guard::test_only_this_computer_is_a_valid_host",
        "test_guard::test_a_foreign_host_is_refused_everywhere",
        "test_server::test_raw_requests_without_a_valid_host_are_refused",
    ),
    6: (
        "test_guard::test_a_foreign_origin_is_refused",
        "test_guard::test_requests_of_other_sites_are_refused",
        "browser/test_sign_in::test_other_sites_cannot_frame_or_read_pages",
        "browser/test_sign_in::test_a_link_on_another_site_needs_one_more_click",
    ),
    7: ("browser/test_sign_in::test_the_cookie_is_not_sent_to_another_port",),
    8: ("test_guard::test_only_get_and_head_are_methods",),
    9: (
        "test_pages_security::test_no_name_in_an_address_leads_to_another_file",
        "test_pages_security::test_traversal_with_plain_dots_finds_nothing",
    ),
    10: (
        "test_guard::test_a_long_address_is_refused",
        "test_server::test_oversized_requests_end_with_one_answer",
        "test_pages_security::test_hostile_parameters_are_no_fault",
        "test_pages_security::test_a_forged_cursor_is_explained",
    ),
    11: (
        "test_hostile_sessions::test_hostile_text_stays_text",
        "test_hostile_sessions::test_every_page_is_tried",
        "test_hostile_sessions::test_answer_for_programs_is_never_a_page",
        "test_pages_security::test_hostile_sessions_stay_text_on_every_page",
        "browser/test_hostile::test_a_hostile_list_is_text",
        "browser/test_hostile::test_a_hostile_session_is_text",
        "browser/test_hostile::test_every_page_is_tried",
    ),
    12: (
        "test_pages_security::test_a_hostile_title_stays_in_its_place",
        "test_pages_security::test_a_hostile_name_stays_in_the_header_of_a_download",
        "test_hostile_events::test_text_cannot_end_its_event",
        "test_hostile_events::test_hostile_session_sends_only_the_events_of_the_server",
    ),
    13: (
        "test_pages_security::test_every_page_of_the_demo_is_inert",
        "test_pages_security::test_an_error_page_is_inert_too",
        "test_guard::test_an_unknown_address_is_a_page",
        "test_guard::test_a_fault_of_pollux_shows_neither_path_nor_traceback",
    ),
    14: (
        "test_guard::test_requests_of_other_sites_are_refused",
        "browser/test_sign_in::test_other_sites_cannot_frame_or_read_pages",
        "browser/test_sign_in::test_our_own_pages_cannot_be_framed",
    ),
    15: ("test_pages_security::test_attachments_are_downloads", "browser/test_hostile::test_attachments_are_downloads"),
    16: (
        "test_server::test_a_second_start_opens_a_tab_of_the_first",
        "test_server::test_a_killed_server_leaves_nothing_in_the_way",
        "test_server::test_a_stranger_on_the_port_learns_nothing",
        "test_server::test_a_damaged_runtime_file_is_ignored",
    ),
    17: (
        "test_server::test_a_viewer_is_private_and_leaves_nothing",
        "test_server::test_another_program_gets_no_page",
        "test_server::test_another_user_of_the_computer_is_refused",
        "test_server::test_a_folder_that_others_can_write_to_is_refused",
    ),
    18: (
        "test_server::test_open_streams_do_not_keep_the_server_alive",
        "test_server::test_a_page_that_never_ends_does_not_keep_the_server_alive",
        "test_server::test_a_server_that_hangs_ends_as_well",
    ),
    19: (
        "test_archive_trouble::test_an_unusable_archive_is_a_page_that_says_so",
        "test_archive_trouble::test_a_removed_archive_is_created_again",
        "test_archive_trouble::test_a_replaced_archive_is_read",
        "test_archive_trouble::test_a_locked_archive_is_read",
        "test_archive_trouble::test_a_locked_database_is_read",
    ),
    20: (
        "test_guard::test_a_fault_of_pollux_shows_neither_path_nor_traceback",
        "test_guard::test_a_fault_outside_of_all_routes_says_as_little",
    ),
    21: ("test_schemathesis::test_no_generated_request_is_a_server_error",),
}


def test_all_21_are_listed() -> None:
    assert [*TESTS] == [*range(1, 22)]
    assert __doc__ is not None
    for number in TESTS:
        assert f"\n| {number} | " in __doc__


@pytest.mark.parametrize("number", TESTS)
def test_listed_tests_exist(number: int) -> None:
    for name in TESTS[number]:
        file, _, function = name.partition("::")
        tree = ast.parse((FOLDER / f"{file}.py").read_text("utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name
