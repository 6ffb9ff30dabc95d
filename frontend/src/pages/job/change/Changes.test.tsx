import { render, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import { Changes } from './Changes';

const UNITS = { field: 'operator.units', before: 2, after: 3, effect: 'starts_anew' };
const REASON = 'the checkpoint began with 2 units, and this says 3';

it('says why a field begins anew where the API gives a reason, and else nothing', () => {
  const { rerender } = render(<Changes changes={[{ ...UNITS, reason: REASON }]} before="now" after="then" />);
  expect(screen.getByText(REASON)).toBeTruthy();
  rerender(<Changes changes={[{ ...UNITS, reason: null }]} before="now" after="then" />);
  expect(screen.queryByText(REASON)).toBeNull();
  expect(screen.queryByRole('paragraph')).toBeNull();
});
