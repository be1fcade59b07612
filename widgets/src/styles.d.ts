// The bundler handles CSS imports.
declare module "*.css";
