/** "Copy as": the action beside it as curl, as a command of streamjoin, or as Python. */
import { ActionIcon, Menu, Tooltip, VisuallyHidden } from '@mantine/core';
import { REFUSED, useCopied } from '../copy';
import type { Recipe } from '../recipes';
import { CheckIcon, CopyIcon } from './icons';

export function CopyAs({ recipe, what }: { recipe: Recipe; what: string }) {
  const { copied, refused, copy } = useCopied();
  const said = refused !== null ? `${REFUSED} as ${refused}` : copied !== null && `Copied as ${copied}`;
  const forms = [
    ['curl', recipe.curl],
    ['command line', recipe.cli],
    ['Python', recipe.python],
  ] as const;
  return (
    <Menu position="bottom-end" withinPortal={false}>
      <Menu.Target>
        <Tooltip label={said || `Copy as: ${what}`}>
          <ActionIcon variant="subtle" color="gray" aria-label={`Copy as curl, command line or Python: ${what}`}>
            {copied === null ? <CopyIcon /> : <CheckIcon />}
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        {forms.map(([name, text]) => (
          <Menu.Item key={name} onClick={() => copy(name, text)}>
            Copy as {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
      <VisuallyHidden role="status">{said}</VisuallyHidden>
    </Menu>
  );
}
