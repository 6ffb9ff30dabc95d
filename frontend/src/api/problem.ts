/** An error that the API named, or the lack of an answer, as one kind of Error. */
import type { Place, ProblemDocument } from './types';

export class Problem extends Error {
  readonly document: ProblemDocument;
  readonly code: string;
  readonly status: number;
  readonly title: string;
  readonly hint: string | null;
  readonly places: Place[];
  readonly requestId: string | null;

  constructor(document: ProblemDocument) {
    super(document.detail);
    this.name = 'Problem';
    this.document = document;
    this.code = document.code;
    this.status = document.status;
    this.title = document.title;
    this.hint = document.hint ?? null;
    this.places = document.errors ?? [];
    this.requestId = document.request_id ?? null;
  }
}

const isDocument = (value: unknown): value is ProblemDocument =>
  typeof value === 'object' && value !== null && 'code' in value && 'detail' in value && 'status' in value;

/** The problem that a response which is no success tells of. */
export function problemOf(response: Response, body: unknown): Problem {
  if (isDocument(body)) return new Problem(body);
  return new Problem({
    type: 'about:blank',
    code: 'unavailable',
    status: response.status,
    title: 'Something between the browser and the platform answered instead',
    detail: `the answer was ${String(response.status)} ${response.statusText}`.trim(),
  });
}

/** The problem of no response at all. */
export function unreachable(cause: unknown): Problem {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Problem({
    type: 'about:blank',
    code: 'unreachable',
    status: 0,
    title: 'The platform does not answer',
    detail: `no connection (${reason})`,
    hint: 'It is tried again by itself. Is streamjoin up still running?',
  });
}

/** Any error as a problem, so that one component shows all of them. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({ type: 'about:blank', code: 'internal', status: 0, title: 'The dashboard failed', detail });
}

/** Statuses of what is over in a moment: too much at once, or something that is needed is away. */
const PASSING = new Set([429, 502, 503, 504]);

/** Whether the same request may succeed if it is asked again later. */
export const mayPass = ({ code, status }: Problem): boolean => code === 'unreachable' || PASSING.has(status);
