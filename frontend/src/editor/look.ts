/** How the editor looks: in the page's colours, light and dark. */
import { HighlightStyle } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

export const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--sj-accent)', fontWeight: '600' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--sj-busy)' },
  { tag: tags.string, color: 'var(--sj-good)' },
  { tag: tags.comment, color: 'var(--sj-muted)', fontStyle: 'italic' },
  { tag: tags.standard(tags.name), color: 'var(--sj-accent)' },
]);

export const look = EditorView.theme({
  '&': { backgroundColor: 'transparent', color: 'var(--sj-text)', fontSize: '0.875rem' },
  '&.cm-focused': { outline: '2px solid var(--sj-accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mantine-font-family-monospace)', lineHeight: '1.55' },
  '.cm-content': { minHeight: '180px', padding: '10px 0', caretColor: 'var(--sj-text)' },
  '.cm-cursor': { borderLeftColor: 'var(--sj-text)' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--sj-muted)', border: '0' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--sj-hover) 55%, transparent)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--sj-accent) 28%, transparent) !important',
  },
  '.cm-tooltip': { backgroundColor: 'var(--sj-panel)', border: '1px solid var(--sj-border)', color: 'var(--sj-text)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--sj-accent)', color: 'var(--sj-panel)' },
  '.cm-diagnostic': { fontFamily: 'var(--mantine-font-family)', fontSize: '0.8125rem' },
});
