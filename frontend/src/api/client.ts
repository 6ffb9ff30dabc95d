/** The typed client of the API. `answered` turns what it gives into data or a thrown Problem. */
import createClient from 'openapi-fetch';
import { baseUrl } from '../env';
import { Problem, problemOf, unreachable } from './problem';
import type { paths } from './rest.gen';

export const api = createClient<paths>({
  baseUrl: baseUrl.href,
  // Looked up at each call, so that tests can put another in its place.
  fetch: (request) => globalThis.fetch(request),
});

interface Reply<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/**
 * The body of a successful reply.
 *
 * @throws Problem: the API refused, or nobody answered.
 */
export async function answered<Data>(pending: Promise<Reply<Data>>): Promise<Data> {
  let reply: Reply<Data>;
  try {
    reply = await pending;
  } catch (failure) {
    if (failure instanceof Problem || (failure instanceof DOMException && failure.name === 'AbortError')) throw failure;
    throw unreachable(failure);
  }
  if (!reply.response.ok) throw problemOf(reply.response, reply.error);
  return reply.data as Data;
}
