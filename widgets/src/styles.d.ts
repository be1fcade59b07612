// Styles are a matter of the bundler.
declare module "*.css";
