import { invalidField } from '../../../errors.ts';
import type { PlanContext } from '../../../operation-context.ts';
import { findUser } from '../../access/user-records/find-user.ts';

/**
 * The e-mail address of a user: the given one, or that of a linked account.
 *
 * @throws ApiError invalid_data when there is none.
 */
export async function requireEmail(
  context: Pick<PlanContext, 'app' | 'em'>,
  userId: string,
  given: string | undefined,
): Promise<string> {
  const email = given ?? (await getEmail(context, userId));
  if (email !== undefined) return email;
  throw invalidField('/email', 'expected an email address: the user has no linked one');
}

/** The address of the user's linked e-mail account, if any. */
export async function getEmail(
  context: Pick<PlanContext, 'app' | 'em'>,
  userId: string,
): Promise<string | undefined> {
  const { linkedAccounts } = await findUser(context, userId);
  return linkedAccounts.find(({ type }) => type === 'email')?.subject;
}

/**
 * Requires a URL that only the customer's browser opens.
 *
 * CHOICE: `https`, or `http` to the browser's own machine (RFC 8252 §7.3), for apps under development.
 *
 * @throws ApiError invalid_data
 */
export function requireRedirect(text: string | undefined): void {
  if (text === undefined) return;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLoopback = url?.protocol === 'http:' && LOOPBACK.test(url.hostname);
  if (url?.protocol !== 'https:' && !isLoopback) {
    throw invalidField('/redirect_uri', 'expected an `https` URL');
  }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
