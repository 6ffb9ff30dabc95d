/** JSON as the editor colours it. */
import { StreamLanguage } from '@codemirror/language';

const NAME = /^"(?:[^"\\]|\\.)*"(?=\s*:)/;
const TEXT = /^"(?:[^"\\]|\\.)*"?/;

export const jsonLanguage = StreamLanguage.define({
  token: (stream) => {
    if (stream.eatSpace()) return null;
    if (stream.match(NAME)) return 'name.standard';
    if (stream.match(TEXT)) return 'string';
    if (stream.match(/^(true|false|null)\b/)) return 'bool';
    if (stream.match(/^-?[\d.]+([eE][+-]?\d+)?/)) return 'number';
    stream.next();
    return null;
  },
});
