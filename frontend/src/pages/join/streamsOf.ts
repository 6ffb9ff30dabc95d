/** Which of the registered streams a query names: whole words, as the query is not parsed here. */
export const streamsOf = (query: string, names: string[]): string[] => {
  const words = new Set(query.match(/[A-Za-z_][A-Za-z0-9_]*/g) ?? []);
  return names.filter((name) => words.has(name));
};
