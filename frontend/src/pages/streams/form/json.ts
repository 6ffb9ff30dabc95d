/** A JSON text as people type it: where it is wrong, or its value with the place of each part of it. */

/** Offsets into the text. */
export interface Span {
  from: number;
  to: number;
}

export interface Mistake extends Span {
  message: string;
}

export type Reading =
  | { value: unknown; /** By JSON pointer; all of it is "". */ spans: Map<string, Span>; mistake: null }
  | { mistake: Mistake };

const DEPTH_MAX = 100;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const TEXT = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/uy;
const WORD = /[\w.+-]+/y;

class Wrong extends Error {
  constructor(readonly mistake: Mistake) {
    super(mistake.message);
  }
}

/** Goes through a text once. Browsers say where JSON is wrong each in its own words, and some do not say. */
class Reader {
  readonly spans = new Map<string, Span>();
  private at = 0;

  constructor(private readonly text: string) {}

  all(): void {
    this.value('', 0);
    this.take(SPACE);
    if (this.at < this.text.length) this.refuse('nothing may follow the end');
  }

  private value(pointer: string, depth: number): void {
    this.take(SPACE);
    const from = this.at;
    if (depth > DEPTH_MAX) this.refuse('is nested too deeply');
    const letter = this.text[from];
    if (letter === '{') this.parts(pointer, depth, '}');
    else if (letter === '[') this.parts(pointer, depth, ']');
    else if (letter === '"') this.quoted();
    else this.plain();
    this.spans.set(pointer, { from, to: this.at });
  }

  /** An object or a list. */
  private parts(pointer: string, depth: number, end: '}' | ']'): void {
    const names = new Set<string>();
    this.at += 1;
    this.take(SPACE);
    if (this.text[this.at] === end) {
      this.at += 1;
      return;
    }
    for (let place = 0; ; place += 1) {
      this.take(SPACE);
      const part = end === ']' ? String(place) : this.name(names);
      this.value(`${pointer}/${part}`, depth + 1);
      this.take(SPACE);
      const letter = this.text[this.at];
      if (letter !== ',' && letter !== end) this.refuse(`a comma or ${end} is missing`);
      this.at += 1;
      if (letter === end) return;
    }
  }

  private name(names: Set<string>): string {
    const from = this.at;
    if (this.text[from] !== '"') this.refuse('a name in double quotes is missing');
    const name = JSON.parse(this.quoted()) as string;
    if (names.has(name)) this.refuse(`"${name}" is there already`, from);
    names.add(name);
    this.take(SPACE);
    if (this.text[this.at] !== ':') this.refuse('a colon is missing');
    this.at += 1;
    return name;
  }

  private quoted(): string {
    const found = this.take(TEXT);
    if (found === '') {
      const line = this.text.slice(this.at).split('\n', 1)[0] ?? '';
      this.refuse('this text does not end on its line, or has a \\ that means nothing', this.at, this.at + line.length);
    }
    return found;
  }

  private plain(): void {
    const from = this.at;
    const word = this.take(WORD);
    if (['true', 'false', 'null'].includes(word)) return;
    this.at = from;
    const number = this.take(NUMBER);
    if (number === '' || number !== word) {
      this.at = from;
      this.refuse(
        word === '' ? 'a value is missing' : `${word} is no value; texts stand in double quotes`,
        from,
        from + word.length,
      );
    }
    if (/^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number)))
      this.refuse('is larger than a browser keeps exactly; send it from Python', from);
  }

  private take(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.at += found.length;
    return found;
  }

  private refuse(message: string, from = this.at, to = this.at): never {
    throw new Wrong({ from, to, message });
  }
}

export function readJson(text: string): Reading {
  const reader = new Reader(text);
  try {
    reader.all();
    return { value: JSON.parse(text) as unknown, spans: reader.spans, mistake: null };
  } catch (wrong) {
    if (wrong instanceof Wrong) return { mistake: wrong.mistake };
    throw wrong;
  }
}

export type ObjectReading =
  | { value: Record<string, unknown>; spans: Map<string, Span>; mistake: null }
  | { mistake: Mistake };

/** As `readJson`, of a text that is to be an object. */
export function readObject(text: string): ObjectReading {
  const reading = readJson(text);
  if (reading.mistake !== null) return reading;
  const { value, spans } = reading;
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { value: value as Record<string, unknown>, spans, mistake: null };
  return { mistake: { ...(spans.get('') ?? { from: 0, to: 0 }), message: 'this is no object, such as {"name": 1}' } };
}

/** Lines and columns from 1. */
export function placeOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at).split('\n');
  return { line: before.length, column: (before[before.length - 1] ?? '').length + 1 };
}
