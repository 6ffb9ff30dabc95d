/** Which part of their time the charts of a page show, and on which scale, as somebody chose. */
import { useCallback, useMemo, useState } from 'react';
import { within, type Stretch, type View } from './view';

/** @param all the time that the charts have; null where they have none. */
export function useView(all: Stretch | null) {
  const [chosen, choose] = useState<View>({ zoom: null, isLog: false });
  // What was chosen gets too old at some time.
  const view = useMemo(() => ({ ...chosen, zoom: chosen.zoom && within(all, chosen.zoom) }), [all, chosen]);
  const onZoom = useCallback((zoom: Stretch | null) => choose(({ isLog }) => ({ isLog, zoom })), []);
  return { view, choose, onZoom };
}
