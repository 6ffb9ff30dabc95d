/** What every editor of the dashboard is made of, whatever its language. */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, syntaxHighlighting } from '@codemirror/language';
import { linter, lintGutter, lintKeymap } from '@codemirror/lint';
import type { Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { nonce } from '../env';
import { colours, look } from './look';

/**
 * Typing over a selection of several lines: browsers merge the lines with styles of their own, which the page's policy
 * refuses, so it is done here.
 */
const typingOverSelection = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (event.inputType !== 'insertText' || event.data === null || view.state.selection.main.empty) return false;
    view.dispatch({ ...view.state.replaceSelection(event.data), userEvent: 'input.type', scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

export const common = (label: string, onChange: (value: string) => void): Extension => [
  EditorView.cspNonce.of(nonce),
  lineNumbers(),
  history(),
  drawSelection(),
  highlightActiveLine(),
  bracketMatching(),
  // Tab leaves the editor, as the keyboard must be able to.
  keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
  typingOverSelection,
  linter(null),
  lintGutter(),
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ 'aria-label': label, 'aria-multiline': 'true' }),
  syntaxHighlighting(colours),
  look,
  EditorView.updateListener.of((update) => {
    if (update.docChanged) onChange(update.state.doc.toString());
  }),
];
