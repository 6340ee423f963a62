import { findApp } from '../../domain/access/apps/find-app.ts';
import { changeUserState } from '../../domain/wallets/users/change-user-state.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'configureUser'> = async ({ path, body }, context) => {
  const { clock, ids } = context;
  const state = {
    mfaMethods: body.mfa_methods,
    hasAcceptedTerms: body.has_accepted_terms,
    isGuest: body.is_guest,
    isFrozen: body.frozen,
  };
  const stored = await context.changeApps(async (em) => {
    const app = await findApp(em, path.app_id);
    return changeUserState({ app, em, ids, nowMs: clock.now() }, path.user_id, state);
  });
  const user = userView(stored);
  return {
    id: user.id,
    mfa_methods: user.mfa_methods.map(({ type }) => type),
    has_accepted_terms: user.has_accepted_terms,
    is_guest: user.is_guest,
    frozen: user.frozen_at !== undefined,
  };
};
