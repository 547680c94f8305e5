# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Will blocking pay?
#
# A stencil over long rows loses its reuse when several rows no longer fit a cache. Does it pay to block the loops, and by how much?

# %%
import kernmodel as km

KERNEL, MACHINE, N = "stencil", "hsw", 100_000

# %% [markdown]
# ## Is there something to win?
#
# The prediction over the length of rows, as a frame of pandas. Where T_L1L2 or T_L2L3 goes up, a layer condition breaks.

# %%
sweep = km.sweep_sizes(KERNEL, MACHINE, cache="lc", M=1000, N="500-200000:8log")
frame = sweep.frame()
columns = ["N", *(name for name in frame.columns if name.startswith("T_") and name.endswith("_cy_per_CL"))]
frame[columns].round(1)

# %% [markdown]
# The largest size for which each condition holds, solved from the formula:

# %%
traffic = km.data_traffic(KERNEL, MACHINE, cache="lc", M=1000, N=N).answer.traffic
for condition in traffic.conditions:
    print(condition.cache, "holds" if condition.holds else "breaks", "; ".join(condition.solved.values()))

# %% [markdown]
# ## What would blocks buy?
#
# Each candidate is modelled as the blocked nest that it is, with the halos and the short inner loops that it gets.

# %%
blocking = km.block(KERNEL, MACHINE, M=1000, N=N)
blocking

# %% [markdown]
# ## And when all cores run?
#
# One core's gain is lost where the memory is saturated anyway: compare at the saturation point before you rewrite.

# %%
km.scale(KERNEL, MACHINE, cores="1-7", cache="lc", M=1000, N=N)
