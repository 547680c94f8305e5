"""Tests of kernmodel.words."""

from __future__ import annotations

from kernmodel.words import count, first_names, plural


def test_numbers_have_their_noun_in_the_right_form():
    assert (count(1, "core"), count(2, "core"), count(0, "branch", "branches")) == ("1 core", "2 cores", "0 branches")
    assert (plural(1.0, "iteration"), plural(0.5, "iteration")) == ("iteration", "iterations")


def test_of_many_names_the_first_are_told():
    assert first_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert first_names(["a", "b"], 2) == "a, b"
