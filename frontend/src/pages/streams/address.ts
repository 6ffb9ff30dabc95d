/** Where a stream's page is. */
import type { Stream } from '../../api/types';

/** By its name, which people can read; a stream that is called as a page of ours is found by its id. */
export const streamPath = ({ id, name }: Pick<Stream, 'id' | 'name'>): string =>
  `/streams/${name === 'new' ? id : encodeURIComponent(name)}`;
