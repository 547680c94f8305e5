/* The dependencies of a block and the slowest cycle in them: the compiled twin of kernmodel.incore.dependences.graph and cycles,
   which say what is modelled and why. */

#include <stdlib.h>
#include <string.h>

#include "block.h"

enum { NOBODY = -1, SYNCHRONISED = -1 };

static const double tiny = 1e-9;

typedef struct { int32_t resource, vertex; double cycles; } Pending;

typedef struct {
    Block *b;
    int32_t *latest; /* by resource: the vertex that produced it last */
    Pending *pending;
    int32_t *first; /* by instruction: its first vertex */
    int32_t pendings, edges_room;
} Graph;

/* ---- the edges ---- */

static int make_room(Graph *g)
{
    Block *b = g->b;
    int64_t waits = 0, inner = 0, values = 0;
    int32_t resources = 1;
    for (int32_t n = 0; n < b->count; n++) {
        const Known *known = b->known[n];
        waits += known->template->waits + 1;
        inner += known->template->inner;
        values += known->template->values + 1;
        for (int32_t r = 0; r < known->template->is.registers; r++)
            if (known->registers[r] >= resources)
                resources = known->registers[r] + 1;
    }
    if (waits + inner + b->links.count > INT32_MAX / 64 || values > INT32_MAX / 64)
        return BEYOND;
    g->edges_room = (int32_t)(waits + inner + b->links.count);
    g->latest = arena_take(b->arena, resources, sizeof(int32_t));
    g->pending = arena_take(b->arena, waits, sizeof(Pending));
    g->first = arena_take(b->arena, b->count, sizeof(int32_t));
    b->owners = arena_take(b->arena, values, sizeof(int32_t));
    b->values = arena_take(b->arena, values, sizeof(int32_t));
    b->ready = arena_take(b->arena, values, sizeof(double));
    b->edges = arena_take(b->arena, g->edges_room, sizeof(Edge));
    if (!g->latest || !g->pending || !g->first || !b->owners || !b->values || !b->ready || !b->edges)
        return NO_MEMORY;
    memset(g->latest, -1, sizeof(int32_t) * (size_t)resources); /* NOBODY */
    return 0;
}

static void add_edge(Block *b, int32_t source, int32_t target, double latency, int32_t passes)
{
    b->edges[b->edge_count++] = (Edge){source, target, latency, passes};
}

static int32_t add_vertex(Block *b, int32_t owner, int32_t value)
{
    b->ready[b->vertices] = value < 0 ? 0.0 : b->known[owner]->template->ready[value];
    b->owners[b->vertices] = owner;
    b->values[b->vertices] = value;
    return b->vertices++;
}

static void read_resource(Graph *g, int32_t resource, int32_t vertex, double cycles)
{
    if (g->latest[resource] == NOBODY)
        g->pending[g->pendings++] = (Pending){resource, vertex, cycles};
    else
        add_edge(g->b, g->latest[resource], vertex, cycles, 0);
}

static int is_ahead_at_start(const Block *b)
{
    for (int32_t n = b->count - 1; n >= 0; n--)
        if (b->known[n]->template->is.uses_stack)
            return b->known[n]->template->is.flow_moves;
    return 0;
}

/* Bring rsp, which is resource 0, up to date; whether the stack engine is ahead of it then. */
static int use_stack(Graph *g, int32_t n, int ahead)
{
    const Template *t = g->b->known[n]->template;
    if (ahead && t->is.flow_reads && (t->is.flow_writes || !g->b->machine->figures.facile_stack)) {
        const int32_t vertex = g->b->vertices;
        read_resource(g, 0, vertex, g->b->machine->times.synchronise);
        g->latest[0] = add_vertex(g->b, n, SYNCHRONISED);
    }
    return t->is.flow_moves;
}

static void add_flow(Graph *g, int32_t n)
{
    Block *b = g->b;
    const Known *known = b->known[n];
    const Template *t = known->template;
    const int32_t first = g->first[n] = b->vertices;
    for (int32_t k = 0; k < t->waits; k++) {
        const int32_t resource = known->registers[t->wait[k].slot];
        if (resource >= 0)
            read_resource(g, resource, first + t->wait[k].value, t->wait[k].cycles);
    }
    for (int32_t k = 0; k < t->inner; k++)
        add_edge(b, first + t->in[k].load, first + t->in[k].value, t->in[k].cycles, 0);
    for (int32_t k = 0; k < t->values; k++)
        add_vertex(b, n, k);
    for (int32_t k = 0; k < t->gives; k++) {
        const int32_t resource = known->registers[t->give[k].slot];
        if (resource >= 0)
            g->latest[resource] = first + t->give[k].value;
    }
}

/* What waits for the pass before: one edge from each vertex to another, the longest. Pendings are sorted by vertex. */
static void join_passes(Graph *g)
{
    Block *b = g->b;
    const int32_t crossing = b->edge_count;
    for (int32_t k = 0; k < g->pendings; k++) {
        const Pending *p = &g->pending[k];
        const int32_t source = g->latest[p->resource];
        if (p->cycles > b->ready[p->vertex])
            b->ready[p->vertex] = p->cycles;
        if (source == NOBODY)
            continue;
        int32_t e = b->edge_count - 1;
        while (e >= crossing && b->edges[e].target == p->vertex && b->edges[e].source != source)
            e--;
        if (e < crossing || b->edges[e].target != p->vertex) {
            e = b->edge_count;
            add_edge(b, source, p->vertex, 0.0, 1);
        }
        if (p->cycles > b->edges[e].latency)
            b->edges[e].latency = p->cycles;
    }
}

/* ---- addresses that come straight from a load ---- */

enum { POINTER = 1, COPY = 2 };

static int spread(const Block *b, uint8_t *marks)
{
    int more = 0;
    for (int32_t e = 0; e < b->edge_count; e++) {
        const Edge *edge = &b->edges[e];
        if (marks[edge->target] == COPY && marks[edge->source] & POINTER) {
            marks[edge->target] |= POINTER;
            more = 1;
        }
    }
    return more;
}

static int shorten_pointer_chains(Graph *g)
{
    Block *b = g->b;
    int saving = 0, pointers = 0;
    for (int32_t n = 0; n < b->count; n++) {
        const Template *t = b->known[n]->template;
        saving |= t->is.special && t->takes.saves > 0.0;
        pointers |= t->is.special && t->is.pointer >= 0 && !t->is.copies;
    }
    if (!saving || !pointers)
        return 0;
    uint8_t *marks = arena_take(b->arena, b->vertices, 1);
    double *saves = arena_take(b->arena, b->vertices, sizeof(double));
    if (!marks || !saves)
        return NO_MEMORY;
    memset(marks, 0, (size_t)b->vertices);
    memset(saves, 0, sizeof(double) * (size_t)b->vertices);
    for (int32_t n = 0; n < b->count; n++) {
        const Template *t = b->known[n]->template;
        if (t->is.special && t->values)
            saves[g->first[n]] = t->takes.saves;
        if (t->is.special && t->is.pointer >= 0)
            marks[g->first[n] + t->is.pointer] = t->is.copies ? COPY : POINTER;
    }
    while (spread(b, marks))
        ;
    for (int32_t e = 0; e < b->edge_count; e++) {
        Edge *edge = &b->edges[e];
        if (saves[edge->target] > 0.0 && marks[edge->source] & POINTER) {
            const double rest = edge->latency - saves[edge->target];
            edge->latency = rest > 0.0 ? rest : 0.0;
        }
    }
    return 0;
}

/* ---- through memory ---- */

static int add_link(Graph *g, const Link *link)
{
    Block *b = g->b;
    if (link->store < 0 || link->store >= b->count || link->load < 0 || link->load >= b->count)
        return MALFORMED;
    const Template *storing = b->known[link->store]->template, *loading = b->known[link->load]->template;
    int32_t load = -1, store = -1;
    for (int32_t k = 0; k < loading->loads; k++)
        if (loading->load[k].place == link->load_place)
            load = k;
    for (int32_t k = 0; k < storing->stores; k++)
        if (storing->store[k].place == link->store_place)
            store = storing->store[k].value;
    if (load < 0 || store < 0)
        return MALFORMED;
    const Times *times = &b->machine->times;
    double latency = link->cycles < 0 ? times->forward : link->cycles;
    if (b->machine->figures.forward_as_load && link->cycles < 0)
        latency = loading->load[load].cycles - times->shortest + (link->store == link->load);
    add_edge(b, g->first[link->store] + store, g->first[link->load] + load, latency, link->passes);
    return 0;
}

/* ---- additions (kernmodel.incore.dependences.adders) ---- */

enum { BEHIND = 1, AHEAD = 2, SEEN = 4 };

/* Mark what is reached from a vertex (BEHIND), and what reaches it (AHEAD). */
static void mark_reached(const Block *b, uint8_t *marks, int32_t start)
{
    for (int32_t e = 0; e < b->edge_count; e++) {
        marks[b->edges[e].target] |= b->edges[e].source == start ? BEHIND : 0;
        marks[b->edges[e].source] |= b->edges[e].target == start ? AHEAD : 0;
    }
    for (int more = 1; more;) {
        more = 0;
        for (int32_t e = 0; e < b->edge_count; e++) {
            uint8_t *source = &marks[b->edges[e].source], *target = &marks[b->edges[e].target];
            more |= (*source & BEHIND && !(*target & BEHIND)) || (*target & AHEAD && !(*source & AHEAD));
            *target |= *source & BEHIND;
            *source |= *target & AHEAD;
        }
    }
}

/* Number of separate loop-carried chains with additions: sets of vertices that lie on cycles with each other. */
static int32_t count_adding_chains(const Block *b, uint8_t *marks)
{
    int32_t found = 0;
    memset(marks, 0, (size_t)b->vertices);
    for (int32_t e = 0; e < b->edge_count; e++) { /* every cycle has an edge into a later pass */
        if (!b->edges[e].passes || marks[b->edges[e].source] & SEEN)
            continue;
        int adds = 0;
        for (int32_t v = 0; v < b->vertices; v++)
            marks[v] &= SEEN;
        mark_reached(b, marks, b->edges[e].source);
        for (int32_t v = 0; v < b->vertices; v++)
            if ((marks[v] & (BEHIND | AHEAD)) == (BEHIND | AHEAD)) {
                marks[v] |= SEEN;
                adds |= b->known[b->owners[v]]->template->is.adds;
            }
        found += adds;
    }
    return found;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Moves that are done at rename hand on what an addition gives, and the domain of what they move; moves of moves, too. */
static void hand_on(const Block *b, Later *later)
{
    for (int more = 1; more;) {
        more = 0;
        for (int32_t e = 0; e < b->edge_count; e++) {
            const Later *from = &later[b->owners[b->edges[e].source]];
            const int32_t target = b->owners[b->edges[e].target];
            if (!b->known[target]->template->is.hands_on)
                continue;
            const double longer = from->to_others - from->to_adders;
            if (longer > later[target].to_others) {
                later[target].to_adders = 0.0;
                later[target].to_others = longer;
                more = 1;
            }
            if (from->domain && !later[target].domain) {
                later[target].domain = from->domain;
                more = 1;
            }
        }
    }
}

/* What results take longer than rows say: those of additions, and vectors between two domains that the block has. */
static int delay_results(Block *b)
{
    const Times *times = &b->machine->times;
    int adds = 0, wide = 0, domains = 0;
    for (int32_t n = 0; n < b->count; n++) {
        const Traits *own = &b->known[n]->template->is;
        adds |= own->adds && b->machine->figures.adders;
        wide |= own->wide;
        domains |= times->between_domains > 0.0 ? own->domain : 0;
    }
    if (!adds && domains != 3)
        return 0;
    uint8_t *marks = arena_take(b->arena, b->vertices, 1);
    Later *later = arena_take(b->arena, b->count, sizeof(Later));
    if (!marks || !later)
        return NO_MEMORY;
    const double several = times->several_chains > 0.0 && count_adding_chains(b, marks) > times->free_chains ? times->several_chains : 0.0;
    const double to_adders = wide ? larger(several, times->beside_wide) : several;
    const double to_others = larger(to_adders, times->to_others);
    for (int32_t n = 0; n < b->count; n++) {
        const Template *own = b->known[n]->template;
        const double given = own->takes.addition;
        later[n] = (Later){0.0, 0.0, own->is.domain};
        if (adds && own->is.adds) {
            later[n].to_adders = larger(0.0, to_adders - given);
            later[n].to_others = larger(0.0, to_others - given);
        }
    }
    hand_on(b, later);
    b->later = later;
    return 0;
}

static void delay_edges(Block *b)
{
    for (int32_t e = 0; e < b->edge_count; e++) {
        const int32_t source = b->owners[b->edges[e].source], target = b->owners[b->edges[e].target];
        if (source != target || b->edges[e].passes) /* not from what an addition loads to its own result */
            b->edges[e].latency += waits_longer(b, source, target);
    }
}

static int make_graph(Graph *g)
{
    Block *b = g->b;
    int failure = make_room(g);
    if (failure)
        return failure;
    int ahead = is_ahead_at_start(b);
    for (int32_t n = 0; n < b->count; n++) {
        if (b->known[n]->template->is.uses_stack)
            ahead = use_stack(g, n, ahead);
        add_flow(g, n);
    }
    join_passes(g);
    if (b->machine->times.pointer_saving > 0.0)
        failure = shorten_pointer_chains(g);
    for (int32_t k = 0; k < b->links.count && !failure; k++)
        failure = add_link(g, &b->links.links[k]);
    if ((b->machine->figures.adders || b->machine->times.between_domains > 0.0) && !failure)
        failure = delay_results(b);
    if (b->later && !failure)
        delay_edges(b);
    return failure;
}

/* ---- the slowest cycle ---- */

typedef struct {
    Edge *within, *crossing, *best;
    int32_t within_count, crossing_count, best_count;
    double *ready;
    const Edge **via;
    int32_t *seen, *changed;
} Search;

static int compare_edges(const void *a, const void *b)
{
    const Edge *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return (x->latency > y->latency) - (x->latency < y->latency);
}

static void sort_edges(Edge *edges, int32_t count)
{
    if (count > 64) {
        qsort(edges, (size_t)count, sizeof(Edge), compare_edges);
        return;
    }
    for (int32_t k = 1; k < count; k++) {
        const Edge own = edges[k];
        int32_t place = k;
        for (; place && compare_edges(&own, &edges[place - 1]) < 0; place--)
            edges[place] = edges[place - 1];
        edges[place] = own;
    }
}

enum { LEADS = 1, REACHED = 2 };

/* What may be on a cycle: edges within a pass in the order of their sources, and those into later passes. */
static void take_candidates(const Block *b, Search *s, uint8_t *marks)
{
    memset(marks, 0, (size_t)b->vertices);
    Edge *all = s->best; /* of room enough, and free as yet */
    int32_t count = 0;
    for (int32_t e = 0; e < b->edge_count; e++) {
        if (b->edges[e].passes) {
            marks[b->edges[e].source] |= LEADS;
            marks[b->edges[e].target] |= REACHED;
        } else {
            all[count++] = b->edges[e];
        }
    }
    sort_edges(all, count);
    int32_t leading = count;
    for (int32_t e = count - 1; e >= 0; e--)
        if (marks[all[e].target] & LEADS) {
            marks[all[e].source] |= LEADS;
            all[--leading] = all[e];
        }
    for (int32_t e = leading; e < count; e++)
        if (marks[all[e].source] & REACHED) {
            marks[all[e].target] |= REACHED;
            s->within[s->within_count++] = all[e];
        }
    for (int32_t e = 0; e < b->edge_count; e++) {
        const Edge *edge = &b->edges[e];
        if (edge->passes && marks[edge->source] & REACHED && marks[edge->target] & LEADS)
            s->crossing[s->crossing_count++] = *edge;
    }
}

static int make_search(const Block *b, Search *s)
{
    memset(s, 0, sizeof *s);
    s->within = arena_take(b->arena, b->edge_count, sizeof(Edge));
    s->crossing = arena_take(b->arena, b->edge_count, sizeof(Edge));
    s->best = arena_take(b->arena, (int64_t)b->edge_count + b->vertices, sizeof(Edge));
    s->ready = arena_take(b->arena, b->vertices, sizeof(double));
    s->via = arena_take(b->arena, b->vertices, sizeof(Edge *));
    s->seen = arena_take(b->arena, b->vertices, sizeof(int32_t));
    s->changed = arena_take(b->arena, b->edge_count, sizeof(int32_t));
    uint8_t *marks = arena_take(b->arena, b->vertices, 1);
    if (!s->within || !s->crossing || !s->best || !s->ready || !s->via || !s->seen || !s->changed || !marks)
        return NO_MEMORY;
    take_candidates(b, s, marks);
    return 0;
}

static double own_ratio(const Edge *edge)
{
    return edge->source == edge->target ? edge->latency / edge->passes : 0.0;
}

/* Copy the cycle that a vertex is on, from its lowest source on. */
static void follow(Search *s, int32_t start)
{
    int32_t count = 0, vertex = start, lowest = 0;
    do {
        count++;
        vertex = s->via[vertex]->source;
    } while (vertex != start);
    Edge *edges = s->best + count; /* first behind where they belong */
    for (int32_t k = count - 1; k >= 0; k--) {
        edges[k] = *s->via[vertex];
        vertex = edges[k].source;
    }
    for (int32_t k = 1; k < count; k++)
        if (edges[k].source < edges[lowest].source)
            lowest = k;
    for (int32_t k = 0; k < count; k++)
        s->best[k] = edges[(lowest + k) % count];
    s->best_count = count;
}

/* The first cycle met backwards from what changed, among the edges by which each vertex was reached last. */
static int close_cycle(const Block *b, Search *s, int32_t changes)
{
    memset(s->seen, -1, sizeof(int32_t) * (size_t)b->vertices);
    for (int32_t walk = 0; walk < changes; walk++) {
        int32_t vertex = s->changed[walk];
        while (s->seen[vertex] == -1 && s->via[vertex]) {
            s->seen[vertex] = walk;
            vertex = s->via[vertex]->source;
        }
        if (s->seen[vertex] == -1) { /* the walk ends here */
            s->seen[vertex] = walk;
        } else if (s->seen[vertex] == walk && s->via[vertex]) {
            follow(s, vertex);
            return 1;
        }
    }
    return 0;
}

static void relax(Search *s, const Edge *edge, double time, int32_t *changes)
{
    if (time > s->ready[edge->target] + tiny) {
        s->ready[edge->target] = time;
        s->via[edge->target] = edge;
        if (changes)
            s->changed[(*changes)++] = edge->target;
    }
}

/* Whether there is a cycle with more than `ratio` cycles per pass, by label correction; it is `best` then. */
static int find_better(const Block *b, Search *s, double ratio)
{
    for (int32_t v = 0; v < b->vertices; v++) {
        s->ready[v] = 0.0;
        s->via[v] = NULL;
    }
    for (;;) {
        int32_t changes = 0;
        for (int32_t e = 0; e < s->within_count; e++)
            relax(s, &s->within[e], s->ready[s->within[e].source] + s->within[e].latency, NULL);
        for (int32_t e = 0; e < s->crossing_count; e++) {
            const Edge *edge = &s->crossing[e];
            relax(s, edge, s->ready[edge->source] + edge->latency - ratio * edge->passes, &changes);
        }
        if (!changes) /* every cycle has an edge into a later pass, so only such a change can have closed one */
            return 0;
        if (close_cycle(b, s, changes))
            return 1;
    }
}

static double ratio_of(const Search *s, int32_t *passes)
{
    double latency = 0.0;
    *passes = 0;
    for (int32_t k = 0; k < s->best_count; k++) {
        latency += s->best[k].latency;
        *passes += s->best[k].passes;
    }
    return latency / *passes;
}

static void search(Block *b, Search *s)
{
    double ratio = 0.0;
    int several = 0;
    for (int32_t e = 0; e < s->crossing_count; e++) {
        several |= s->crossing[e].source != s->crossing[e].target;
        if (own_ratio(&s->crossing[e]) > ratio) {
            ratio = own_ratio(&s->crossing[e]);
            s->best[0] = s->crossing[e];
            s->best_count = 1;
            b->cycle_passes = s->best[0].passes;
        }
    }
    while (several && find_better(b, s, ratio))
        ratio = ratio_of(s, &b->cycle_passes);
    b->cycle = s->best;
    b->cycle_length = s->best_count;
    b->components[PART_PRECEDENCE] = ratio;
}

static int is_in_memory(const Block *b, int32_t vertex)
{
    const int32_t value = b->values[vertex];
    return value >= 0 && b->known[b->owners[vertex]]->template->in_memory[value];
}

int bound_dependencies(Block *b)
{
    Graph g = {.b = b};
    Search s;
    int failure = make_graph(&g);
    if (failure || (failure = make_search(b, &s)))
        return failure;
    for (int32_t e = 0; e < b->edge_count; e++)
        if (b->edges[e].passes < 1 && b->edges[e].source >= b->edges[e].target)
            return MALFORMED; /* a cycle might span no pass at all */
    b->applies |= 1u << PART_PRECEDENCE;
    search(b, &s);
    for (int32_t k = 0; k < b->cycle_length; k++)
        b->through_memory |= is_in_memory(b, b->cycle[k].source);
    return 0;
}
