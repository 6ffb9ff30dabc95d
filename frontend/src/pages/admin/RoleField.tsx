/** A role, with what it may. */
import { Radio, Stack } from '@mantine/core';
import type { Role } from '../../api/types';
import { MAY } from '../../shell/roles';

interface RoleFieldProps {
  roles: readonly Role[];
  value: Role;
  onChange: (role: Role) => void;
  error?: string | undefined;
}

export function RoleField({ roles, value, onChange, error }: RoleFieldProps) {
  return (
    <Radio.Group label="Role" value={value} error={error} onChange={onChange}>
      <Stack gap={8} mt={6}>
        {roles.map((role) => (
          <Radio key={role} size="xs" value={role} label={role} description={MAY[role]} />
        ))}
      </Stack>
    </Radio.Group>
  );
}
