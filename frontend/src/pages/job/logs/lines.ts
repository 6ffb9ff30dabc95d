/** A log's text as entries: the driver's are JSON, Spark's begin with a time, and what follows belongs to them. */

export type Level = 'debug' | 'info' | 'warning' | 'error';

export interface LogLine {
  /** As it is written, with its date; empty where the line has none. */
  at: string;
  /** Such as 01:25:45.518. */
  time: string;
  /** Milliseconds since 1970, where the line says in which zone its time is: Spark's of earlier versions do not. */
  atMs: number | null;
  level: Level;
  generation: number | null;
  message: string;
  /** What belongs to it, such as where in the program it happened. */
  more: string;
  /** Who wrote it. */
  logger: string;
  /** As it is written. */
  raw: string;
}

const LEVELS: Record<string, Level> = {
  trace: 'debug',
  debug: 'debug',
  info: 'info',
  warn: 'warning',
  warning: 'warning',
  error: 'error',
  critical: 'error',
  fatal: 'error',
};

const levelOf = (word: unknown): Level => (typeof word === 'string' ? LEVELS[word.toLowerCase()] : undefined) ?? 'info';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Of a time such as 2026-11-22T01:25:45.518319Z, or with a comma as Java writes it. */
const clockOf = (time: string): string => time.slice(11, 23).replace(',', '.');

const SPARK = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}Z?) ([A-Z]+) ([\w.$]+): (.*)$/;
const TRACE = 'Traceback ';
const JAVA = /^(WARNING|ERROR|SEVERE|INFO): (.*)$/;

const NOTHING: Omit<LogLine, 'message' | 'raw'> = {
  at: '',
  time: '',
  atMs: null,
  level: 'info',
  generation: null,
  more: '',
  logger: '',
};

function jsonLine(raw: string): LogLine | null {
  if (!raw.startsWith('{') || !raw.endsWith('}')) return null;
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(raw) as Record<string, unknown>;
  } catch {
    return null;
  }
  const time = text(fields.timestamp);
  const atMs = Date.parse(time);
  const [message = '', ...below] = text(fields.event).split('\n');
  return {
    at: time,
    time: clockOf(time),
    atMs: Number.isNaN(atMs) ? null : atMs,
    level: levelOf(fields.level),
    generation: typeof fields.generation === 'number' ? fields.generation : null,
    message,
    more: [...below, text(fields.exception)].filter((line) => line !== '').join('\n'),
    logger: text(fields.logger),
    raw,
  };
}

/** The beginning of an entry; null for a line that goes on with the one before. */
function firstLine(raw: string): LogLine | null {
  const json = jsonLine(raw);
  if (json !== null) return json;
  const plain = { ...NOTHING, raw };
  const [, time = '', level, logger = '', message = ''] = SPARK.exec(raw) ?? [];
  if (time !== '') {
    const atMs = time.endsWith('Z') ? Date.parse(time.replace(',', '.')) : null;
    return { ...plain, at: time, time: clockOf(time), atMs, level: levelOf(level), logger, message };
  }
  const [, javaLevel, javaMessage = ''] = JAVA.exec(raw) ?? [];
  if (javaLevel !== undefined) return { ...plain, level: levelOf(javaLevel), message: javaMessage };
  if (raw.startsWith(TRACE)) return { ...plain, level: 'error', message: raw };
  return null;
}

/** Entries of Spark's may have lines below them, in JSON all is on one line. */
const isOfSpark = (line: LogLine): boolean => SPARK.test(line.raw.split('\n', 1)[0] ?? '');

/** Whether a plain line belongs to the entry before: Java and Python indent what does, and say causes below. */
function goesOn(raw: string, before: LogLine): boolean {
  if (isOfSpark(before)) return true;
  if (before.time !== '' || raw.startsWith(TRACE)) return false;
  return before.more !== '' || before.level === 'error' || /^\s/.test(raw);
}

export function readLog(log: string): LogLine[] {
  const lines: LogLine[] = [];
  const all = log.split('\n');
  if (all.at(-1) === '') all.pop();
  for (const raw of all) {
    const first = firstLine(raw);
    const before = lines.at(-1);
    if (before !== undefined && (first === null || raw.startsWith(TRACE)) && goesOn(raw, before)) {
      before.more += before.more === '' ? raw : `\n${raw}`;
      before.raw += `\n${raw}`;
    } else if (first !== null) {
      lines.push(first);
    } else if (raw.trim() !== '') {
      lines.push({ ...NOTHING, message: raw, raw });
    }
  }
  return lines;
}

/** When each generation began, oldest first. */
export interface Began {
  generation: number;
  atMs: number;
}

/** Lines of threads that do not know their generation get the one that ran when they were written. */
export function withGenerations(lines: LogLine[], began: Began[]): LogLine[] {
  return lines.map((line) => {
    const { atMs } = line;
    if (line.generation !== null || atMs === null) return line;
    const ran = began.filter((one) => one.atMs <= atMs).at(-1);
    return ran === undefined ? line : { ...line, generation: ran.generation };
  });
}

const WORSE: Level[] = ['debug', 'info', 'warning', 'error'];

export interface Filter {
  /** This level, and worse ones. */
  level: Level;
  /** Null for all of them. */
  generation: number | null;
  text: string;
}

export function filtered(lines: LogLine[], { level, generation, text }: Filter): LogLine[] {
  const least = WORSE.indexOf(level);
  const sought = text.trim().toLowerCase();
  return lines.filter(
    (line) =>
      WORSE.indexOf(line.level) >= least &&
      (generation === null || line.generation === generation) &&
      (sought === '' || `${line.message}\n${line.more}\n${line.logger}`.toLowerCase().includes(sought)),
  );
}
