/** What a file of somebody's own may be called as an upload: other characters become `_`. */
const NAME_BYTES_MAX = 120;
const OTHERS = /[^\p{L}\p{Nd} ._\-+,()@]/gu;

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

export function uploadName(name: string): string {
  const allowed = name.normalize('NFC').replace(OTHERS, '_').replace(/^[^\p{L}\p{Nd}]+/u, '').replace(/[ .]+$/, '');
  // What tells the format stands at the end.
  const dot = allowed.search(/(\.[^. ]{1,8}){1,2}$/);
  const ending = dot > 0 ? allowed.slice(dot) : '';
  let start = dot > 0 ? allowed.slice(0, dot) : allowed;
  while (bytesOf(start + ending) > NAME_BYTES_MAX) start = [...start].slice(0, -1).join('');
  return start + ending || 'file';
}

/** What queries may call a stream of this file; empty where its name has nothing that they may. */
export const streamName = (file: string): string =>
  file
    .replace(/\.[^ ]*$/, '')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^[_\d]+|_+$/g, '')
    .slice(0, 63);
