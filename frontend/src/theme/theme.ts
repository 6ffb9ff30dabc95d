/** Colours and sizes: dense, calm, and dark enough to read in both schemes. */
import { Badge, Button, createTheme, Modal, Table, Tooltip } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'indigo',
  colors: {
    dark: [
      '#dfe4ea',
      '#c3cad3',
      '#a3adba',
      '#828c9a',
      '#3d4550',
      '#2f353e',
      '#242a32',
      '#1b1f25',
      '#13161a',
      '#0d0f12',
    ],
  },
  // The eighth shade has contrast enough for white text on it, in both schemes.
  primaryShade: { light: 8, dark: 8 },
  defaultRadius: 'sm',
  fontFamily: 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: {
    fontWeight: '600',
    sizes: { h1: { fontSize: '1.375rem' }, h2: { fontSize: '1rem' }, h3: { fontSize: '0.875rem' } },
  },
  respectReducedMotion: true,
  components: {
    Badge: Badge.extend({ defaultProps: { variant: 'light', radius: 'sm', tt: 'none', fw: 500 } }),
    Button: Button.extend({ defaultProps: { size: 'xs' } }),
    // A dialog's header is no banner of the page.
    Modal: Modal.extend({
      defaultProps: { attributes: { header: { role: 'none' } }, closeButtonProps: { 'aria-label': 'Close' } },
    }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 6, horizontalSpacing: 'sm', fz: 'sm' } }),
    Tooltip: Tooltip.extend({ defaultProps: { openDelay: 300, withArrow: true } }),
  },
});

/** Series of charts are told apart by dash as well as by colour, by place: the first line is drawn through. */
const DASHES: readonly (readonly number[])[] = [[], [7, 5], [2, 4], [9, 3, 2, 3], [4, 4], [12, 4]];

/** The dashes of a line; lines of one colour have different ones. */
export const dashesOf = (number: number): readonly number[] =>
  DASHES[(number + Math.floor(number / DASHES.length)) % DASHES.length] ?? [];

/** Light and dark. As many as there are dashes. */
export const SERIES = {
  light: ['#3b4fc4', '#0b7285', '#a61e4d', '#8f5600', '#2b6a1c', '#6741d9'],
  dark: ['#91a7ff', '#66d9e8', '#faa2c1', '#ffc078', '#a9e34b', '#b197fc'],
} as const;
