/** Reads what an open mapping has, such as a report of a driver of another version: what is missing or wrong is nothing. */

export type Fields = Record<string, unknown>;

export const isMapping = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const mapping = (value: unknown): Fields => (isMapping(value) ? value : {});

export const mappings = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(mapping) : []);

export const numberOrNull = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;

export const number = (value: unknown): number => numberOrNull(value) ?? 0;

/** Numbers by name. */
export const numbers = (value: unknown): Record<string, number> =>
  Object.fromEntries(Object.entries(mapping(value)).map(([name, one]) => [name, number(one)]));
