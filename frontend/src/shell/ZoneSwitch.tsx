/** In which zone times are shown, on all pages: the browser's or UTC. */
import { SegmentedControl } from '@mantine/core';
import { chooseZone, useTimes } from '../times';

export function ZoneSwitch() {
  const { zone } = useTimes();
  return (
    <SegmentedControl
      size="xs"
      aria-label="Zone of all times"
      value={zone}
      onChange={chooseZone}
      data={[
        { value: 'local', label: 'Local' },
        { value: 'utc', label: 'UTC' },
      ]}
    />
  );
}
