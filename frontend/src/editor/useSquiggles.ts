/** What an editor underlines, as one object for as long as it is the same: it takes a new one for news. */
import { useMemo } from 'react';
import type { Place } from '../api/types';
import { squigglesOf, type Squiggle } from './offsets';

export function useSquiggles(text: string, places: Place[]): Squiggle[] {
  const key = JSON.stringify(places);
  return useMemo(() => squigglesOf(text, JSON.parse(key) as Place[]), [text, key]);
}
