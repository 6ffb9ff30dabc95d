/** Copies a text. Its name says which, and that it was copied is said, too. */
import { ActionIcon, Tooltip, VisuallyHidden } from '@mantine/core';
import { REFUSED, useCopied } from '../copy';
import { CheckIcon, CopyIcon } from './icons';

/** @param what such as "the query". */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const { copied, refused, copy } = useCopied();
  const said = refused !== null ? `${REFUSED} ${refused}` : copied !== null && `Copied ${copied}`;
  return (
    <>
      <Tooltip label={said || `Copy ${what}`}>
        <ActionIcon variant="subtle" color="gray" aria-label={`Copy ${what}`} onClick={() => copy(what, text)}>
          {copied === null ? <CopyIcon /> : <CheckIcon />}
        </ActionIcon>
      </Tooltip>
      <VisuallyHidden role="status">{said}</VisuallyHidden>
    </>
  );
}
