import type { Handler } from '../control-plane.ts';
import { findVerificationPage, verificationPageView } from '../verification-page-view.ts';

export const run: Handler<'getVerificationPage'> = async ({ path }, context) =>
  verificationPageView(await findVerificationPage(context, path.token));
