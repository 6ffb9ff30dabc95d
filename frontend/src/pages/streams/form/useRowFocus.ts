/** In a list of rows, typing goes on in a new one; one that is removed leaves the focus to the button below. */
import { useRef, useState } from 'react';

export function useRowFocus() {
  const [added, setAdded] = useState<number | null>(null);
  const add = useRef<HTMLButtonElement>(null);
  return {
    /** The place of the newest row, which is to take the focus. */
    added,
    add,
    adds: setAdded,
    removed: () => {
      setAdded(null);
      add.current?.focus();
    },
  };
}
