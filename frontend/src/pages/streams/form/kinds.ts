/** The kinds of generated streams as a list to choose from: by workload, as `zipf` of `zipf.r`. */
import type { Generator } from '../../../api/types';

interface Group {
  group: string;
  items: string[];
}

/**
 * @param chosen also in the list where the platform has no such kind, so that it is seen.
 */
export function grouped(generators: Generator[], chosen: string): Group[] {
  const groups = new Map<string, string[]>();
  const kinds = generators.map(({ kind }) => kind);
  if (chosen !== '' && !kinds.includes(chosen)) kinds.push(chosen);
  for (const kind of kinds) {
    const workload = kind.split('.', 1)[0] ?? kind;
    groups.set(workload, [...(groups.get(workload) ?? []), kind]);
  }
  return [...groups].map(([group, items]) => ({ group, items }));
}
