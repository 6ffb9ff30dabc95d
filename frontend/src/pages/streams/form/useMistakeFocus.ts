/** Moves the focus to the first wrong field of a form, once the mistakes are shown. */
import { useEffect, useRef, useState } from 'react';

export function useMistakeFocus() {
  const form = useRef<HTMLFormElement>(null);
  const [goes, setGoes] = useState(0);
  useEffect(() => {
    if (goes > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [goes]);
  return { form, goToMistake: () => setGoes((before) => before + 1) };
}
