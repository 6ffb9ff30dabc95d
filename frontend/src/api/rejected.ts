/** Where the browser fetches rejected rows as a file; the page itself never holds it. */
import { baseUrl } from '../env';
import type { RejectedFilter } from './queries';

export function downloadRejected(id: string, filter: RejectedFilter, format: 'csv' | 'ndjson'): string {
  const url = new URL(`api/v1/jobs/${encodeURIComponent(id)}/rejected/download`, baseUrl);
  for (const [name, value] of Object.entries({ ...filter, format })) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url.href;
}
