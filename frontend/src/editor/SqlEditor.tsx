/** An editor for queries, with completion from the streams' columns. */
import { autocompletion, closeBrackets } from '@codemirror/autocomplete';
import { useMemo } from 'react';
import { CodeEditor, type CodeEditorProps } from './CodeEditor';
import { joinLanguage } from './language';

interface SqlEditorProps extends Omit<CodeEditorProps, 'language'> {
  /** Column names by stream. */
  columns: Record<string, string[]>;
}

// Completions are taken with Enter: Tab leaves the editor.
const typing = [closeBrackets(), autocompletion({ icons: false })];

export function SqlEditor({ columns, ...editor }: SqlEditorProps) {
  const language = useMemo(() => [typing, joinLanguage(columns)], [columns]);
  return <CodeEditor {...editor} language={language} />;
}
