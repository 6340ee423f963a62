/** Verifies the access tokens of users for the credentials check, which runs before there is an operation. */
export interface UserTokens {
  /**
   * The user that a valid, unexpired token of the app names; undefined for any other text.
   *
   * @param at `nowMs`: Unix ms.
   */
  verify(
    token: string,
    at: { readonly appId: string; readonly nowMs: number },
  ): Promise<{ readonly userId: string; readonly sessionId: string } | undefined>;
}
