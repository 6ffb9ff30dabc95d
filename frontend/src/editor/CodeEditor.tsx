/** An editor of text in any language, in which mistakes are underlined where they are. */
import { setDiagnostics } from '@codemirror/lint';
import { Compartment, EditorState, type Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { common } from './extensions';
import type { Squiggle } from './offsets';

export interface CodeEditorProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  squiggles: Squiggle[];
  /** The language, and what else it needs; always the same object unless it changes. */
  language: Extension;
}

export function CodeEditor({ label, value, onChange, squiggles, language }: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const compartment = useRef(new Compartment());
  const latest = useRef({ value, onChange, language });

  useEffect(() => {
    latest.current = { value, onChange, language };
  }, [value, onChange, language]);

  useEffect(() => {
    if (place.current === null) return undefined;
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          common(label, (text) => latest.current.onChange(text)),
          compartment.current.of(latest.current.language),
        ],
      }),
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [label]);

  useEffect(() => {
    const made = view.current;
    // In the editor every line ends with a line feed, and to show a text is not to change it.
    if (made !== null && made.state.doc.toString() !== value.replace(/\r\n?/g, '\n')) {
      made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: value } });
    }
  }, [value]);

  useEffect(() => {
    view.current?.dispatch({ effects: compartment.current.reconfigure(language) });
  }, [language]);

  useEffect(() => {
    const made = view.current;
    if (made === null) return;
    const { length } = made.state.doc;
    const shown = squiggles
      .filter(({ to }) => to <= length)
      .map((squiggle) => ({ ...squiggle, severity: 'error' as const }));
    made.dispatch(setDiagnostics(made.state, shown));
  }, [squiggles]);

  return <div ref={place} />;
}
