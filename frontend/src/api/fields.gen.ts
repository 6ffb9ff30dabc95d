// Made by npm run gen:api; not to be edited.
export type Kind = 'text' | 'number' | 'numbers' | 'names' | 'flag';

export interface Setting {
  name: string;
  label: string;
  /** What it means, in a sentence. */
  says: string;
  /** What holds while it is empty. */
  unset: string;
  kind: Kind;
  /** The only values that there are. */
  choices?: readonly string[];
  /** Whether it says how many units there are. */
  countsUnits: boolean;
  /** Whether operators are compared by it. */
  compared: boolean;
}

export const OPERATOR_SETTINGS: Readonly<Record<string, readonly Setting[]>> = {
  "auto": [
    {
      "name": "routing",
      "label": "Routing",
      "says": "which units a tuple goes to",
      "unset": "hash where there is an equality, else random",
      "kind": "text",
      "choices": [
        "random",
        "hash",
        "contrand"
      ],
      "countsUnits": false,
      "compared": true
    },
    {
      "name": "r_units",
      "label": "Units of R",
      "says": "units that store the first stream (m)",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "s_units",
      "label": "Units of S",
      "says": "units that store the second stream (n)",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "r_groups",
      "label": "r_groups",
      "says": "contrand: subgroups of r_units (d), at most as many as units",
      "unset": "the root of these units, rounded down",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "s_groups",
      "label": "s_groups",
      "says": "contrand: subgroups of s_units (e), at most as many as units",
      "unset": "the root of these units, rounded down",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "r_bounds",
      "label": "r_bounds",
      "says": "contrand on a band alone: the d - 1 keys at which R's next subgroup begins, rising",
      "unset": "none",
      "kind": "numbers",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "s_bounds",
      "label": "s_bounds",
      "says": "contrand on a band alone: the e - 1 keys at which S's next subgroup begins, rising",
      "unset": "none",
      "kind": "numbers",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "adaptive",
      "label": "adaptive",
      "says": "units are added and taken away while the job runs, by how much is stored",
      "unset": "false",
      "kind": "flag",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "capacity",
      "label": "Capacity (MiB)",
      "says": "adaptive: MiB that a unit is to store at most (C)",
      "unset": "1024",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "min_units",
      "label": "min_units",
      "says": "adaptive: units of each stream that stay",
      "unset": "1",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "max_units",
      "label": "max_units",
      "says": "adaptive: units of each stream at most",
      "unset": "four times as many as at first",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "add_above",
      "label": "add_above",
      "says": "adaptive: above this share of its capacity a subgroup asks for units",
      "unset": "0.8",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "drain_below",
      "label": "drain_below",
      "says": "adaptive: below this share of its capacity a subgroup gives units away",
      "unset": "0.3",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "target",
      "label": "target",
      "says": "adaptive: the share of its capacity that a subgroup is to have then",
      "unset": "0.6",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "check_every",
      "label": "check_every",
      "says": "adaptive: how often units are asked what they store; at most once a batch",
      "unset": "1min",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "confirmations",
      "label": "confirmations",
      "says": "adaptive: how many times in a row the answer must be the same",
      "unset": "3",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "biclique": [
    {
      "name": "routing",
      "label": "Routing",
      "says": "which units a tuple goes to",
      "unset": "hash where there is an equality, else random",
      "kind": "text",
      "choices": [
        "random",
        "hash",
        "contrand"
      ],
      "countsUnits": false,
      "compared": true
    },
    {
      "name": "r_units",
      "label": "Units of R",
      "says": "units that store the first stream (m)",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "s_units",
      "label": "Units of S",
      "says": "units that store the second stream (n)",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "r_groups",
      "label": "r_groups",
      "says": "contrand: subgroups of r_units (d), at most as many as units",
      "unset": "the root of these units, rounded down",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "s_groups",
      "label": "s_groups",
      "says": "contrand: subgroups of s_units (e), at most as many as units",
      "unset": "the root of these units, rounded down",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "r_bounds",
      "label": "r_bounds",
      "says": "contrand on a band alone: the d - 1 keys at which R's next subgroup begins, rising",
      "unset": "none",
      "kind": "numbers",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "s_bounds",
      "label": "s_bounds",
      "says": "contrand on a band alone: the e - 1 keys at which S's next subgroup begins, rising",
      "unset": "none",
      "kind": "numbers",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "adaptive",
      "label": "adaptive",
      "says": "units are added and taken away while the job runs, by how much is stored",
      "unset": "false",
      "kind": "flag",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "capacity",
      "label": "Capacity (MiB)",
      "says": "adaptive: MiB that a unit is to store at most (C)",
      "unset": "1024",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "min_units",
      "label": "min_units",
      "says": "adaptive: units of each stream that stay",
      "unset": "1",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "max_units",
      "label": "max_units",
      "says": "adaptive: units of each stream at most",
      "unset": "four times as many as at first",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "add_above",
      "label": "add_above",
      "says": "adaptive: above this share of its capacity a subgroup asks for units",
      "unset": "0.8",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "drain_below",
      "label": "drain_below",
      "says": "adaptive: below this share of its capacity a subgroup gives units away",
      "unset": "0.3",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "target",
      "label": "target",
      "says": "adaptive: the share of its capacity that a subgroup is to have then",
      "unset": "0.6",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "check_every",
      "label": "check_every",
      "says": "adaptive: how often units are asked what they store; at most once a batch",
      "unset": "1min",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "confirmations",
      "label": "confirmations",
      "says": "adaptive: how many times in a row the answer must be the same",
      "unset": "3",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "matrix": [
    {
      "name": "rows",
      "label": "Rows",
      "says": "partitions of the first stream",
      "unset": "the root of twice the slots, rounded down",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "columns",
      "label": "Columns",
      "says": "partitions of the second stream",
      "unset": "the root of twice the slots, rounded down",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "splitjoin": [
    {
      "name": "cores",
      "label": "Cores",
      "says": "join cores (k)",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "turn_tuples",
      "label": "turn_tuples",
      "says": "tuples of a stream that a core stores in a row before the next core's turn",
      "unset": "1",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "handshake": [
    {
      "name": "workers",
      "label": "Workers",
      "says": "workers in the line (m)",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "block",
      "label": "block",
      "says": "tuples of a block, which are sent on together",
      "unset": "auto: half of a worker's fair share",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "balance",
      "label": "balance",
      "says": "false: each worker keeps tuples of a fixed age, an equal part of the window; needs a window",
      "unset": "true",
      "kind": "flag",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "threshold",
      "label": "threshold",
      "says": "how many tuples more than its successor a worker must have before it sends any on",
      "unset": "0",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "ring": [
    {
      "name": "nodes",
      "label": "Nodes",
      "says": "nodes in the ring (N), each with a slice of every stream's window",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "lengths",
      "label": "lengths",
      "says": "for streams with little to keep, how many nodes share their window, such as {a: 1}",
      "unset": "all nodes",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "orders",
      "label": "orders",
      "says": "by stream, the order in which its rows meet the others, such as {a: [b, c]}",
      "unset": "first what an equality leads to, then what any condition leads to; of these the shorter reach first",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "adaptive",
      "label": "adaptive",
      "says": "nodes are added and taken away while the job runs, and slices follow the rates",
      "unset": "false",
      "kind": "flag",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "min_nodes",
      "label": "min_nodes",
      "says": "adaptive: nodes that stay",
      "unset": "1",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "max_nodes",
      "label": "max_nodes",
      "says": "adaptive: nodes at most",
      "unset": "four times as many as at first",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "add_above",
      "label": "add_above",
      "says": "adaptive: nodes that work a larger share of their time are too few",
      "unset": "0.8",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "target",
      "label": "target",
      "says": "adaptive: the share of their time that nodes are to work then",
      "unset": "0.6",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "check_every",
      "label": "check_every",
      "says": "adaptive: how often rates are looked at; at most once a batch",
      "unset": "1min",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "confirmations",
      "label": "confirmations",
      "says": "adaptive: how many times in a row the answer must be the same",
      "unset": "3",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "smoothing",
      "label": "smoothing",
      "says": "adaptive: the weight of the newest look in the mean of all",
      "unset": "0.3",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "objective",
      "label": "objective",
      "says": "adaptive: what the number of nodes is chosen for: latency (N*), or output rate (all nodes there may be)",
      "unset": "latency",
      "kind": "text",
      "choices": [
        "latency",
        "rate"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "pair_us",
      "label": "pair_us",
      "says": "adaptive: microseconds to compare a pair (T_j)",
      "unset": "measured; 0.016 until it is",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "send_us",
      "label": "send_us",
      "says": "adaptive: microseconds to send and receive a row (T_s)",
      "unset": "measured; 0.14 until it is",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "hop_us",
      "label": "hop_us",
      "says": "adaptive: microseconds from a node to the next (T_n)",
      "unset": "measured; 1000 until it is",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "aligned": [
    {
      "name": "nodes",
      "label": "Nodes",
      "says": "nodes (N), which take segments in turn",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "segment",
      "label": "segment",
      "says": "how much event time a segment covers (L), far longer than a window",
      "unset": "five times the longest reach",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "master",
      "label": "master",
      "says": "the stream whose rows go to one node each, as the query calls it",
      "unset": "the one with the shortest reach; of equals, the first of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "orders",
      "label": "orders",
      "says": "by stream, the order in which its rows meet the others, such as {a: [b, c]}",
      "unset": "first what an equality leads to, then what any condition leads to; of these the shorter reach first",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "coordinated": [
    {
      "name": "nodes",
      "label": "Nodes",
      "says": "nodes (N) that have segments",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "copies",
      "label": "Copies",
      "says": "on how many nodes each row is stored (c)",
      "unset": "2, or 1 on a single node",
      "kind": "number",
      "countsUnits": false,
      "compared": true
    },
    {
      "name": "segment",
      "label": "segment",
      "says": "how much event time a segment covers (L)",
      "unset": "half of the longest reach",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "orders",
      "label": "orders",
      "says": "by stream, the order in which its rows meet the others, such as {a: [b, c]}",
      "unset": "first what an equality leads to, then what any condition leads to; of these the shorter reach first",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "asof": [
    {
      "name": "units",
      "label": "Units",
      "says": "units that share the keys",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "lookup": [
    {
      "name": "units",
      "label": "Units",
      "says": "units that look rows up",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "ssbj": [
    {
      "name": "units",
      "label": "Units",
      "says": "units that share the join values",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "memory",
      "label": "Memory (MiB)",
      "says": "MiB that all units together may take for rows of the relation and tuples that wait",
      "unset": "256, or as much as it takes with a rate",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "rate",
      "label": "rate",
      "says": "tuples a second that are joined as they come, however much memory that takes",
      "unset": "memory is given",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "partitions",
      "label": "Partitions",
      "says": "parts in which each unit reads its rows of the relation (k)",
      "unset": "as many as make one a tenth of the memory; 10 with a rate",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "steps",
      "label": "Parts a batch",
      "says": "parts of the relation that a batch reads",
      "unset": "as many as have 64 MiB together, at most all",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "switching_factor",
      "label": "switching_factor",
      "says": "how many times as much memory the other place must take before a value moves (s_f)",
      "unset": "1",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "eviction_period",
      "label": "eviction_period",
      "says": "rounds through the relation until cached values are looked at again",
      "unset": "10",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "inequality",
      "label": "inequality",
      "says": "whether a cached value's own entry counts as memory, or not, as in the paper",
      "unset": "bytes",
      "kind": "text",
      "choices": [
        "bytes",
        "paper"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "meshjoin": [
    {
      "name": "units",
      "label": "Units",
      "says": "units that share the join values",
      "unset": "one per slot",
      "kind": "number",
      "countsUnits": true,
      "compared": true
    },
    {
      "name": "memory",
      "label": "Memory (MiB)",
      "says": "MiB that all units together may take for rows of the relation and tuples that wait",
      "unset": "256, or as much as it takes with a rate",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "rate",
      "label": "rate",
      "says": "tuples a second that are joined as they come, however much memory that takes",
      "unset": "memory is given",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "partitions",
      "label": "Partitions",
      "says": "parts in which each unit reads its rows of the relation (k)",
      "unset": "as many as make one a tenth of the memory; 10 with a rate",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "steps",
      "label": "Parts a batch",
      "says": "parts of the relation that a batch reads",
      "unset": "as many as have 64 MiB together, at most all",
      "kind": "number",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "spark": [
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "spark-broadcast": [
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ],
  "spark-shuffled": [
    {
      "name": "archive_period",
      "label": "archive_period",
      "says": "how much event time one segment of the chained index covers",
      "unset": "a tenth of the window",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "index",
      "label": "index",
      "says": "how partners are found among stored tuples",
      "unset": "auto",
      "kind": "text",
      "choices": [
        "auto",
        "hash",
        "tree",
        "scan"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "main",
      "label": "main",
      "says": "the condition of the query that is indexed, as it is written there",
      "unset": "the best one",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "ordering",
      "label": "ordering",
      "says": "the order in which results leave",
      "unset": "none",
      "kind": "text",
      "choices": [
        "none",
        "outer",
        "inner",
        "total"
      ],
      "countsUnits": false,
      "compared": false
    },
    {
      "name": "tree",
      "label": "tree",
      "says": "of three streams and more, what is joined with what, such as [[a, b], c]",
      "unset": "in the order of FROM",
      "kind": "text",
      "countsUnits": false,
      "compared": false
    }
  ]
};

export const RUN_SETTINGS: readonly Setting[] = [
  {
    "name": "slots",
    "label": "Slots",
    "says": "Spark partitions of the unit stage",
    "unset": "the cores of the process",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "files_per_batch",
    "label": "Files per batch",
    "says": "files of each file stream per batch, at most",
    "unset": "files of about 16 MiB",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "offsets_per_batch",
    "label": "Rows per batch",
    "says": "Kafka records, or generator rows, of each stream per batch, at most",
    "unset": "100000",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "driver_memory",
    "label": "Driver memory",
    "says": "MiB of Java heap, 480 or more",
    "unset": "1024",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "heartbeat",
    "label": "Heartbeat",
    "says": "while nothing arrives, a batch runs this often; 0s for never",
    "unset": "1s",
    "kind": "text",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "every",
    "label": "Batches at most every",
    "says": "batches begin this often at most; 0s for at once",
    "unset": "0s",
    "kind": "text",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "strict",
    "label": "Strict",
    "says": "a row that cannot be joined stops the job",
    "unset": "false",
    "kind": "flag",
    "countsUnits": false,
    "compared": false
  }
];

export const RESULT_SETTINGS: readonly Setting[] = [
  {
    "name": "where",
    "label": "Only results where",
    "says": "a condition over the result columns",
    "unset": "all of them",
    "kind": "text",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "select",
    "label": "Only the columns",
    "says": "the result columns that are kept",
    "unset": "all of them",
    "kind": "names",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "retain",
    "label": "Kept for",
    "says": "a span, such as 30d: snapshots closed longer ago are removed",
    "unset": "forever",
    "kind": "text",
    "countsUnits": false,
    "compared": false
  }
];

export const STORES: readonly string[] = [
  "sqlite",
  "cassandra",
  "hbase"
];

export const SNAPSHOT_SETTINGS: readonly Setting[] = [
  {
    "name": "epoch",
    "label": "Epoch",
    "says": "a span of the clock",
    "unset": "1s",
    "kind": "text",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "batches",
    "label": "Batches per epoch",
    "says": "batches per epoch, in place of a span",
    "unset": "none",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "punctuation",
    "label": "Punctuation",
    "says": "close by event time, in place of all others",
    "unset": "false",
    "kind": "flag",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "threshold_rows",
    "label": "Threshold in rows",
    "says": "a snapshot closes with this many rows",
    "unset": "100000",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "threshold_bytes",
    "label": "Threshold in bytes",
    "says": "or with this many bytes",
    "unset": "none",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "immediate",
    "label": "Immediate",
    "says": "close at the threshold, before the epoch ends",
    "unset": "true",
    "kind": "flag",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "delayed",
    "label": "Delayed",
    "says": "with less than this part of the threshold, wait on",
    "unset": "do not wait",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  },
  {
    "name": "delays",
    "label": "Delays",
    "says": "at most this many epochs",
    "unset": "3",
    "kind": "number",
    "countsUnits": false,
    "compared": false
  }
];
