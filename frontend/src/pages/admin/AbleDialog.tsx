/** Whether a user can sign in at all. */
import type { User } from '../../api/types';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { changeUser } from '../../recipes';
import { useChangeUser } from './useChangeUser';

export function AbleDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const change = useChangeUser(user, onClose);
  const disabled = !user.disabled;
  const act = disabled ? 'Disable' : 'Enable';
  return (
    <ConfirmDialog
      title={`${act} ${user.name}?`}
      keep="Cancel"
      act={act}
      isHarmless={!disabled}
      recipe={changeUser(user.name, { disabled })}
      what={`${act.toLowerCase()} this user`}
      doing={change}
      onConfirm={() => change.mutate({ disabled })}
      onClose={onClose}
    >
      {disabled
        ? 'All their logins end, and neither their password nor their keys open anything. What they own stays.'
        : 'Their password and their keys that were not revoked open the platform again.'}
    </ConfirmDialog>
  );
}
