/**
 * An example of a body with names that are not taken yet, so that creating from it works again and again: external
 * ids, and the accounts of new users.
 *
 * `suffix`: lower-case letters and digits.
 */
export function withFreshNames(value: unknown, suffix: string, isAccount = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withFreshNames(item, suffix, isAccount));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const isName =
        name === 'external_id' || (isAccount && (name === 'address' || name === 'custom_user_id'));
      if (isName && typeof inner === 'string') return [name, fresh(inner, suffix)];
      return [name, withFreshNames(inner, suffix, name === 'linked_accounts')];
    }),
  );
}

/** An email address keeps its domain; the address of a wallet stays as it is. */
function fresh(name: string, suffix: string): string {
  if (/^0x|^[1-9A-HJ-NP-Za-km-z]{32,}$/.test(name)) return name;
  const [local = '', domain] = name.split('@');
  return domain === undefined ? `${name}-${suffix}` : `${local}-${suffix}@${domain}`;
}

/** Another one each millisecond. */
export function newSuffix(): string {
  return Math.round(performance.timeOrigin + performance.now()).toString(36);
}
