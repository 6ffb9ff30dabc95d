/** Lists that come page by page, as a whole. */

/** The most that a page of a list has. */
export const PAGE = 200;
/** Nobody looks through more; `has_more` then says that there is more. */
const PAGES_MAX = 50;

export interface Page<Item> {
  data: Item[];
  has_more: boolean;
}

/** How often a list is asked for again, in ms: one of several pages more seldom, as each page is a request. */
export const everyPages = (ms: number) => (query: { state: { data?: Page<unknown> | undefined } }) =>
  ms * Math.max(1, Math.ceil((query.state.data?.data.length ?? 0) / PAGE));

/**
 * All pages of a list as one.
 *
 * @param ask for one page.
 * @param keyOf what of an item the next page comes after.
 */
export async function allPages<Item>(
  ask: (query: { limit: number; starting_after?: string }) => Promise<Page<Item>>,
  keyOf: (item: Item) => string,
): Promise<Page<Item>> {
  const data: Item[] = [];
  for (let pages = 1; ; pages += 1) {
    const last = data.at(-1);
    const page = await ask({ limit: PAGE, ...(last !== undefined && { starting_after: keyOf(last) }) });
    data.push(...page.data);
    if (!page.has_more || page.data.length === 0 || pages === PAGES_MAX) return { data, has_more: page.has_more };
  }
}
