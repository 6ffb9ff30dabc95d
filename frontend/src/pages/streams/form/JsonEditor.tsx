/** An editor of an entry as JSON. */
import { Prec } from '@codemirror/state';
import { keymap } from '@codemirror/view';
import { CodeEditor, type CodeEditorProps } from '../../../editor/CodeEditor';
import { jsonLanguage } from './jsonLanguage';

/** Ctrl-Enter is the page's: here it would open a line. */
const leaveToThePage = Prec.highest(keymap.of([{ key: 'Mod-Enter', run: () => true }]));

const language = [leaveToThePage, jsonLanguage];

export function JsonEditor(editor: Omit<CodeEditorProps, 'language'>) {
  return <CodeEditor {...editor} language={language} />;
}
