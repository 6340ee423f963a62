import type { Handler } from '../control-plane.ts';

export const run: Handler<'getBooks'> = async (_, { chains, fiat }) => ({
  data: (await chains.books()).map(({ caip2, tokenAddress, given, minted, held }) => ({
    ...{ caip2, token_address: tokenAddress, given: String(given), minted: String(minted) },
    held: Object.fromEntries(Object.entries(held).map(([holder, amount]) => [holder, String(amount)])),
  })),
  fiat: [...(await fiat.books())],
});
