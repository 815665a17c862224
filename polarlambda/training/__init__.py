"""Training on coded matrices: gradient descent whose products do not wait for stragglers.

A gradient comes from coded products (`gradients`), a step from a rule (`advance`), and the loop
(`loop`) knows neither AWS nor S3: whatever gives gradients can be trained on.
"""
