/** The credentials that all compared servers accept. Custos gets them as flags. */
export const credentials = {
  appId: 'benchapp0000000000000000b',
  appSecret: 'a_secret_that_only_the_benchmark_knows_0123456789',
};
