/** Light or dark. Until somebody chooses, the system's choice holds. */
import { ActionIcon, useComputedColorScheme, useMantineColorScheme } from '@mantine/core';
import { MoonIcon, SunIcon } from '../components/icons';

export function SchemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const other = useComputedColorScheme('light') === 'dark' ? 'light' : 'dark';
  return (
    <ActionIcon variant="default" aria-label={`Switch to the ${other} theme`} onClick={() => setColorScheme(other)}>
      {other === 'light' ? <SunIcon /> : <MoonIcon />}
    </ActionIcon>
  );
}
