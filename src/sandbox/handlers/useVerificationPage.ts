import { getCustomerById } from '../../domain/money/fiat-customers/find-customer.ts';
import { ApiError } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import { refreshCustomer } from '../refresh-customer.ts';
import { findVerificationPage, verificationPageView } from '../verification-page-view.ts';

export const run: Handler<'useVerificationPage'> = async ({ path, body }, context) => {
  const { environment, snapshot } = await findVerificationPage(context, path.token);
  if (!(await context.fiat.usePage(path.token, body.action))) {
    const state = body.action === 'accept_terms' ? snapshot.terms.status : snapshot.verification.status;
    throw new ApiError(
      'invalid_state',
      `the page does not offer \`${body.action}\`: the status is \`${state}\``,
    );
  }
  const place = { provider: 'bridge', environment };
  const known = await context.read((em) => getCustomerById(em, place, snapshot.id));
  // The user or organization may have been deleted.
  if (known !== undefined) await refreshCustomer(context, known);
  await context.runDueJobs();
  return verificationPageView(await findVerificationPage(context, path.token));
};
