/** A field's value for people; a field that is not given says so. */
export function shownValue(value: unknown): string {
  if (value === undefined || value === null) return 'not set';
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.map(shownValue).join(', ') : JSON.stringify(value);
}
