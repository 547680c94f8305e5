# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Roofline of your loop
#
# A loop in C, a machine, and the question how far the loop can go there. Put your own source into the next cell: sizes are macros or
# parameters, whose values are given where the question is asked.

# %%
import kernmodel as km

LOOP = """
double a[N], b[N], c[N], d[N];
for (int i = 0; i < N; ++i)
    a[i] = b[i] + c[i] * d[i];
"""
MACHINE = "clx"  # km.list_machines() shows the others

# %% [markdown]
# What was read of the source: arrays, accesses, operations.

# %%
km.load_kernel(LOOP, N=10_000_000)

# %% [markdown]
# ## Where it stands
#
# The hierarchical roofline has a point for each memory level. The point nearest to its roof is what holds the loop back.

# %%
chart = km.roofline_chart(LOOP, MACHINE, N=10_000_000)
chart.plot()

# %%
chart

# %% [markdown]
# With little data the caches serve it, and another roof is near:

# %%
for n in (1_000, 20_000, 10_000_000):
    (found,) = km.roofline_chart(LOOP, MACHINE, N=n).answer.kernels
    print(f"{n:>10}  bound by {found.rooflines[0].bound_by}")

# %% [markdown]
# ## The roofs that this loop could reach
#
# CARM counts the bytes of load and store instructions; adCARM scales its roofs by the instruction mix. The reading says which memory
# level deserves the work, and what changes would do.

# %%
km.carm_chart(LOOP, MACHINE, N=10_000_000)

# %% [markdown]
# ## Is it the prediction?
#
# A roofline takes the slowest part. ECM composes the times as the machine does; beside it stands how many cores saturate the memory.

# %%
km.ecm(LOOP, MACHINE, N=10_000_000).answer.prediction.level_shorthand()
