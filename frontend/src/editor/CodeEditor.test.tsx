import { EditorView } from '@codemirror/view';
import { render, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { CodeEditor } from './CodeEditor';

const NONE: never[] = [];

function shown(text = 'one\ntwo\nthree') {
  const onChange = vi.fn();
  const editor = (value: string) => (
    <CodeEditor label="Query" value={value} onChange={onChange} squiggles={NONE} language={NONE} />
  );
  const { rerender } = render(editor(text));
  const box = screen.getByRole('textbox', { name: 'Query' });
  const view = EditorView.findFromDOM(box);
  if (view === null) throw new Error('there is no editor');
  return { box, view, onChange, change: (value: string) => rerender(editor(value)) };
}

const typed = (data: string) =>
  new InputEvent('beforeinput', { inputType: 'insertText', data, bubbles: true, cancelable: true });

test('typing over several lines is done by the editor, not by the browser', () => {
  const { box, view, onChange } = shown();
  view.dispatch({ selection: { anchor: 1, head: 9 } });
  const event = typed('x');
  box.dispatchEvent(event);
  expect(event.defaultPrevented).toBe(true);
  expect(onChange).toHaveBeenCalledExactlyOnceWith('oxhree');
});

test('typing without a selection is left to the browser', () => {
  const { box, onChange } = shown();
  const event = typed('x');
  box.dispatchEvent(event);
  expect(event.defaultPrevented).toBe(false);
  expect(onChange).not.toHaveBeenCalled();
});

test('a text with other ends of lines is not changed by being shown', () => {
  const { view, onChange, change } = shown('one\r\ntwo');
  expect(view.state.doc.toString()).toBe('one\ntwo');
  expect(onChange).not.toHaveBeenCalled();
  change('one\r\nthree');
  expect(view.state.doc.toString()).toBe('one\nthree');
});

test('another value from outside is shown', () => {
  const { view, change } = shown();
  change('four');
  expect(view.state.doc.toString()).toBe('four');
});
