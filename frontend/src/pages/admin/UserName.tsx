/** Whose password a form is about: nobody sees it but programs that keep passwords. */
export const UserName = ({ name }: { name: string }) => (
  <input type="text" hidden readOnly autoComplete="username" value={name} />
);
