/** The stages of a plan, read out of what the API gives of an explanation or of a report. */

/** What a stage reads on one side. */
export type StageInput = { stream: string } | { stage: number } | { relation: string };

/** A join of two inputs, of all streams or of what a round of it found, or groups of one; stages are numbered from 1 in the order in which rows reach them. */
export interface PlanStage {
  stage: number;
  inputs: StageInput[];
  /** Of a join, such as INNER or LEFT; null where groups are made, and where it is not told. */
  kind: string | null;
  /** The names of the queries that it answers, of a job whose queries have stages of their own; else none. */
  queries: string[];
}

/** Whether a stage gives rows by whether they were matched: those of outer, semi and anti joins. */
export const decides = (stage: PlanStage): boolean => hasKind(stage) && !isAsOf(stage);

/** Whether a stage gives each row with the latest one of its key. */
export const isAsOf = ({ kind }: PlanStage): boolean => kind === 'ASOF' || kind === 'ASOF LEFT';

/** Whether people know a stage's join by its kind. */
export const hasKind = ({ kind }: PlanStage): boolean => kind !== null && kind !== 'INNER';

/** The stages whose rows no other one reads: each gives results, and there is one but where queries have their own. */
export function givingResults<Stage extends PlanStage>(stages: Stage[]): Stage[] {
  const read = new Set(stages.flatMap(({ inputs }) => inputs.map((input) => ('stage' in input ? input.stage : 0))));
  return stages.filter(({ stage }) => !read.has(stage));
}

export type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

function inputOf(value: unknown): StageInput | null {
  if (!isFields(value)) return null;
  if (typeof value.stream === 'string') return { stream: value.stream };
  if (typeof value.relation === 'string') return { relation: value.relation };
  return typeof value.stage === 'number' ? { stage: value.stage } : null;
}

/**
 * Stages whose inputs are told, each with what `more` reads of it.
 *
 * @returns none where any is not told: an older version's report, or an answer of another shape.
 */
export function stagesOf<More>(value: unknown, more: (stage: Fields) => More): (PlanStage & More)[] {
  if (!Array.isArray(value)) return [];
  const found = value.filter(isFields).map((stage) => ({
    stage: typeof stage.stage === 'number' ? stage.stage : 0,
    inputs: (Array.isArray(stage.inputs) ? stage.inputs : []).map(inputOf).filter((input) => input !== null),
    kind: typeof stage.kind === 'string' ? stage.kind : null,
    queries: Array.isArray(stage.queries) ? stage.queries.filter((name) => typeof name === 'string') : [],
    ...more(stage),
  }));
  const known = new Set(found.map(({ stage }) => stage));
  // An input is a stream, a relation or an earlier stage, so that what is drawn ends.
  const isWhole = found.every(
    ({ stage, inputs }) =>
      inputs.length > 0 &&
      inputs.every((input) => !('stage' in input) || (input.stage < stage && known.has(input.stage))),
  );
  return isWhole ? found : [];
}
